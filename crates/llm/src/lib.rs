//! Wire formats of language models, server-sent events, a small client and a scripted model. Knows no hooks.
