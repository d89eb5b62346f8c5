"""`python -m lqcd_aot.recipe`: print the JSON Schema of recipes, as it is kept in recipes/recipe.schema.json."""

import json
import sys

from lqcd_aot.recipe.schema import recipe_json_schema

sys.stdout.write(json.dumps(recipe_json_schema(), indent=2) + "\n")
