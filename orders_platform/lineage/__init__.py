"""OpenLineage, off unless asked for: events (what is said of a publication), emit (saying it). Not here: any fact of ours."""
