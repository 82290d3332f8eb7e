"""Entities from files: readers give rows, rows are read strictly, services write them in bulk."""
