"""The model of binding sentences: the sentences that it is fitted on, and the fit."""
