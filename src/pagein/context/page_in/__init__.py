"""Page-in: what left the view and is likely needed now stands behind the run, as data. Pure.

Models rarely ask for what they do not know they lost. A page-in is made behind a compaction or a new user message, and
stays where it was first shown until the next compaction: so it is paid for once, and is part of the provider's cache
after that. Only what is worth its tokens is shown, so in a large view there is often nothing. Decision 0045 has the figures.

``limits`` says how many tokens page-ins may have, ``named`` what the newest action names that is out of view, ``query``
what to search for. ``turns`` chooses whole turns of talk, ``likely`` lines and names of the run and passages that the search
finds, ``files`` lines of the files that the run works on. ``block`` writes what fits; ``sources`` remembers what it was made of.
"""
