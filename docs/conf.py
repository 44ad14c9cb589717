"""How Sphinx builds these pages: ``make docs``."""

from importlib.metadata import version as _version

project = "chat-compaction"
author = "chat-compaction contributors"
copyright = author
release = version = _version("chat-compaction")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"chat-compaction {release}"
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_display_short_literal_types = True
add_module_names = False

# A command is copied without its prompt and what it printed.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
