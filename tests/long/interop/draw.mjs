// The npm client as a program: each line on stdin is a task in JSON, each on stdout its
// answer.
import { createInterface } from "node:readline";
import {
    DocumentStore,
    GetIdentitiesOperation,
    NextIdentityForOperation,
    SeedIdentityForOperation,
} from "ravendb";

class Order {}
class Product {}

let store, database;

// This client refuses URLs that name a user; docs/ravendb.md has these lines.
function asUser(credentials) {
    const authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
    // The client's `dispatcher` is null here, which Node's fetch does not take.
    return (url, { dispatcher, ...options }) =>
        fetch(url, { ...options, headers: { ...options.headers, authorization } });
}

const tasks = {
    async open(site) {
        database = site.database;
        store = new DocumentStore(site.url, database);
        if (site.user) {
            store.conventions.customFetch = asUser(site.user);
        }
        store.initialize();
    },

    async close() {
        const closed = new Promise((resolve) => store.once("executorsDisposed", resolve));
        store.dispose();
        await closed;
    },

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

    async next({ name }) {
        return store.maintenance.send(new NextIdentityForOperation(name));
    },

    async seed({ name, value, force }) {
        return store.maintenance.send(new SeedIdentityForOperation(name, value, force));
    },

    async identities() {
        return store.maintenance.send(new GetIdentitiesOperation());
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const { task, ...parameters } = JSON.parse(line);
    let answer;
    try {
        answer = (await tasks[task](parameters)) ?? null;
    } catch (error) {
        answer = { error: error.name, message: error.message };
    }
    console.log(JSON.stringify(answer));
}
