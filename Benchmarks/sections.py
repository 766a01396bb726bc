"""Sections of a Markdown file that programs write."""

import re


def publish(path, heading, text):
    """Puts `text`, which begins with `heading`, in the place of the section of that heading, or at the end. What follows the section stays:
    from the next heading of its level, or the next marker, on."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    section = re.compile(rf"^{re.escape(heading.rstrip())}\n.*?(?=^## |^<!-- |\Z)", re.M | re.S)
    new = section.sub(lambda _: text.rstrip() + "\n\n", old) if section.search(old) else f"{old.rstrip()}\n\n{text.rstrip()}\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(new.rstrip() + "\n")
