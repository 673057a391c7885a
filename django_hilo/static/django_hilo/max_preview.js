// Tells, while Max is typed, what saving it would do.
"use strict";
{
    const show = (input, output) => {
        const stored = BigInt(input.dataset.hiloMax);
        const typed = input.value.trim();
        if (!/^\d+$/.test(typed) || BigInt(typed) === stored) {
            output.textContent = "";
            return;
        }
        const number = BigInt(typed);
        const raised = number > stored;
        const low = (raised ? stored : number) + 1n;
        const high = raised ? number : stored;
        const text = raised ? input.dataset.hiloRaised : input.dataset.hiloLowered;
        output.textContent = text
            .replace("{low}", low)
            .replace("{high}", high)
            .replace("{count}", high - low + 1n);
    };

    document.addEventListener("DOMContentLoaded", () => {
        for (const input of document.querySelectorAll("input[data-hilo-max]")) {
            const output = document.createElement("output");
            output.className = "help hilo-preview";
            output.htmlFor.add(input.id);
            input.insertAdjacentElement("afterend", output);
            input.addEventListener("input", () => show(input, output));
            show(input, output);
        }
    });
}
