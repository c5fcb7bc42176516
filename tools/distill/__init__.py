"""outrider distill: makes a drafter for a model, from text that the model writes itself (docs/DISTILL.md).

A module for each stage, in this order: text, states, training, export, verdict. __main__ leads from one to the next."""
