"""The executive dashboard: facts (what is known), charts (SVG), page (HTML). Not here: when it is built (assets/)."""
