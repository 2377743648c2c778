"""Prints a SAM template, as JSON, as it is written and as AWS deploys it.

Usage: transform.py < template.yaml. The translator is the one that AWS itself runs for AWS::Serverless; it writes some
ARNs for the region in AWS_DEFAULT_REGION.
"""

import copy
import json
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    """The translator asks for AWS's managed policies by name; the template names none but by its ARN."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    written = yaml_parse(sys.stdin.read())
    packaged = copy.deepcopy(written)
    packaged["Globals"]["Function"]["CodeUri"] = "s3://artifacts/function.zip"  # as packaging leaves it
    json.dump({"written": written, "transformed": transform(packaged, {}, NoManagedPolicies())}, sys.stdout)


if __name__ == "__main__":
    main()
