// The npm client as a program: a JSON object in argv says what to connect to; each line
// on stdin is a task, each line on stdout its answer; the end of stdin closes the store.
import { createInterface } from "node:readline";
import { DocumentStore } from "ravendb";

const { url, database } = JSON.parse(process.argv[2]);

class Order {}
class Product {}

const store = new DocumentStore(url, database);
store.initialize();

const tasks = {
    // `count` ids, a hundred of them asked for at the same time.
    async draw({ count }) {
        const ids = [];
        const generator = store.hiLoIdGenerator;
        while (ids.length < count) {
            const length = Math.min(count - ids.length, 100);
            const one = () => generator.generateDocumentId(database, new Order());
            ids.push(...(await Promise.all(Array.from({ length }, one))));
        }
        return ids;
    },

    // Each way to an id that this client has.
    async ways() {
        const stored = new Order();
        await store.openSession().store(stored);
        const generator = store.hiLoIdGenerator;
        return {
            stored: stored.id,
            next_of_class: await generator.generateNextIdFor(database, Order),
            next_of_entity: await generator.generateNextIdFor(database, new Order()),
            next_of_name: await generator.generateNextIdFor(database, "Products"),
            document: await generator.generateDocumentId(database, new Product()),
        };
    },
};

console.log(JSON.stringify("ready"));
for await (const line of createInterface({ input: process.stdin })) {
    const { task, ...parameters } = JSON.parse(line);
    let answer;
    try {
        answer = await tasks[task](parameters);
    } catch (error) {
        answer = { error: error.name, message: error.message };
    }
    console.log(JSON.stringify(answer));
}
const closed = new Promise((resolve) => store.once("executorsDisposed", resolve));
store.dispose();
await closed;
