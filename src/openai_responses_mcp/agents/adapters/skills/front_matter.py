"""Front matter through the project's one YAML reader: bounded, plain data only, no aliases that grow."""

from openai_responses_mcp.adapters.yaml_file import YamlProblem, read_yaml
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.skills.ports import FrontMatterReader


class YamlFrontMatter(FrontMatterReader):
    def read(self, yaml: str) -> JsonValue:
        try:
            return read_yaml(yaml).data
        except YamlProblem as exc:
            # The first line of the file is the line of dashes.
            raise AgentsError("AGENTS-E-SKILL-PARSE", f"front matter, line {exc.line + 1}: {exc.text}") from exc
