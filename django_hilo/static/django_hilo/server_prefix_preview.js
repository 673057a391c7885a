// Shows, while a server prefix is typed, the next id that it would give.
"use strict";
{
    // The grammar of django_hilo.identifiers.
    const PREFIX = /^(?:[^\s$|\x00-\x1f\x7f]*[^\s$|\x00-\x1f\x7f0-9])?$/;

    const show = (input, output) => {
        const data = input.dataset;
        const field = (id) => document.getElementById(id)?.value.trim();
        const examples = JSON.parse(data.hiloExamples);
        const ofNode = examples[field("id_database") || data.hiloDatabase] || {};
        const tag = data.hiloNodeTag || field("id_node_tag") || "";
        const [start, number] = Object.hasOwn(ofNode, tag) ? ofNode[tag] : ofNode[""];
        const prefix = input.value.trim();
        if (!PREFIX.test(prefix)) {
            output.textContent = data.hiloWrong;
            return;
        }
        const end = data.hiloShowNodeTag === "yes" && tag ? `-${tag}` : "";
        output.textContent = data.hiloNext.replace(
            "{id}", () => `${start}${prefix}${number}${end}`
        );
    };

    document.addEventListener("DOMContentLoaded", () => {
        for (const input of document.querySelectorAll("input[data-hilo-examples]")) {
            const output = document.createElement("output");
            output.className = "help hilo-preview";
            output.htmlFor.add(input.id);
            input.insertAdjacentElement("afterend", output);
            for (const id of [input.id, "id_node_tag", "id_database"]) {
                for (const event of ["input", "change"]) {
                    document.getElementById(id)?.addEventListener(
                        event, () => show(input, output)
                    );
                }
            }
            show(input, output);
        }
    });
}
