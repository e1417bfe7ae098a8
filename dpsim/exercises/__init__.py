"""Exercises with fresh numbers: an answer that is computed, and words for every known mistake."""

from dpsim.exercises.bank import chart_of, items, mistakes, topics, variant, variant_of
from dpsim.exercises.items import Item, Series

__all__ = ["Item", "Series", "chart_of", "items", "mistakes", "topics", "variant", "variant_of"]
