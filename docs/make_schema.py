"""Write the JSON schema of model files, from their declaration in ``latentree.models._format``."""

import json
from pathlib import Path

import latentree.models
from latentree.models._format import json_schema

if __name__ == "__main__":
    path = Path(latentree.models.__file__).with_name("model.schema.json")
    path.write_text(json.dumps(json_schema(), indent=2) + "\n", "utf-8")
