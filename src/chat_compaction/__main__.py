"""``python -m chat_compaction`` is the command ``chat-compaction``."""

from .cli import main

main()
