"use strict";
// What the theme leaves out: row menus and dialogs that work from the keyboard, and our own keys.
(() => {
    const DIALOG = "#modal-content";
    const KEYS = [
        ["/ or Ctrl-K", "search"],
        ["j, k", "next and previous row of a queue"],
        ["c", "claim the item"],
        ["n", "next item"],
        ["?", "show or hide this list"],
    ];
    let opener = null;

    const reach = (root) => {
        for (const menu of root.querySelectorAll("span[x-ref^='rowDropdown']")) {
            menu.tabIndex = 0;
            menu.setAttribute("role", "button");
            menu.setAttribute("aria-haspopup", "menu");
            menu.setAttribute("aria-label", "More actions");
        }
        for (const close of root.querySelectorAll("#dialog > div:first-child")) {
            close.tabIndex = 0;
            close.setAttribute("role", "button");
            close.setAttribute("aria-label", "Close");
        }
    };

    const focusable = (root) =>
        [...root.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")].filter(
            (element) => !element.disabled && element.type !== "hidden" && element.offsetParent,
        );

    const shown = () => {
        const dialog = document.querySelector(DIALOG);
        return dialog && dialog.offsetParent && dialog.childElementCount ? dialog : null;
    };

    const enter = (dialog) => {
        dialog.setAttribute("role", "dialog");
        dialog.setAttribute("aria-modal", "true");
        dialog.tabIndex = -1;
        const title = dialog.querySelector("h1");
        if (title) dialog.setAttribute("aria-label", title.textContent.trim());
        reach(dialog);
        // Alpine shows the dialog after htmx has filled it.
        setTimeout(() => {
            const wanted = dialog.querySelector("textarea, select, input:not([type=hidden])");
            (wanted || dialog).focus();
        }, 50);
    };

    const keepInside = (event, dialog) => {
        const all = focusable(dialog);
        if (!all.length) return;
        const edge = event.shiftKey ? all[0] : all[all.length - 1];
        if (document.activeElement === edge || !dialog.contains(document.activeElement)) {
            event.preventDefault();
            (event.shiftKey ? all[all.length - 1] : all[0]).focus();
        }
    };

    const move = (step) => {
        const rows = [...document.querySelectorAll("a[data-row]")];
        const at = rows.indexOf(document.activeElement);
        rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
    };

    const list = () => {
        const there = document.querySelector(".gs-keys");
        if (there) return there.remove();
        const box = document.createElement("dl");
        box.className = "gs-keys gs-card gs-facts";
        box.setAttribute("aria-label", "Keys");
        for (const [key, does] of KEYS) {
            const pair = document.createElement("div");
            pair.append(document.createElement("dt"), document.createElement("dd"));
            pair.firstChild.textContent = key;
            pair.lastChild.textContent = does;
            box.append(pair);
        }
        document.body.append(box);
    };

    const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

    document.addEventListener("keydown", (event) => {
        const dialog = shown();
        if (dialog && event.key === "Tab") return keepInside(event, dialog);
        if (dialog && event.key === "Escape") return opener?.focus();
        if (event.target.matches?.("[role=button]") && ["Enter", " "].includes(event.key)) {
            event.preventDefault();
            return event.target.click();
        }
        if (isTyping(event.target) || dialog || event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "j") move(1);
        if (event.key === "k") move(-1);
        if (event.key === "?") list();
        if (["c", "n"].includes(event.key)) {
            document.querySelector(`[data-key="${event.key}"]`)?.click();
        }
        if (event.key === "/") {
            const search = document.querySelector("#searchbar");
            if (search) {
                event.preventDefault();
                search.focus();
            }
        }
    });
    document.addEventListener("htmx:beforeRequest", (event) => {
        if (!event.target.closest(DIALOG)) opener = document.activeElement;
    });
    document.addEventListener("htmx:afterSettle", (event) => {
        const dialog = event.target.closest(DIALOG);
        if (dialog) enter(dialog);
    });
    document.addEventListener("DOMContentLoaded", () => reach(document));
})();
