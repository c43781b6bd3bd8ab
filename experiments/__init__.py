"""The paper's experiments, run again: ``python -m experiments`` computes, then writes a page.

Each module named after a section of that page lists its units of work and measures one of them;
``results`` keeps what was measured, ``run`` spreads units over processes, and ``report`` turns kept
results, and nothing else, into tables, figures and text.
"""
