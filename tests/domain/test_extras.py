from openai_responses_mcp.domain.extras import install_line, needs_extra


def test_the_line_that_installs_an_extra_fits_how_the_program_was_started() -> None:
    wanted = '"openai-responses-mcp[guard] @ git+https://github.com/uchimanajet7/openai-responses-mcp"'
    assert install_line("guard", "/opt/venv/bin/python") == f"pip install {wanted}"
    cached = "/home/u/.cache/uv/archive-v0/x1/bin/python"
    assert install_line("guard", cached) == f"uvx --from {wanted} openai-responses-mcp"


def test_a_missing_package_is_named() -> None:
    assert needs_extra("http", "starlette").startswith(
        'this needs the extra "http" (starlette is missing): pip install '
    )
    assert needs_extra("http").startswith('this needs the extra "http": pip install ')
