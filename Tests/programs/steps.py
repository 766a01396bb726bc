"""Runs the steps of a client that is slow to start.

Each line of the input is a JSON list of words, each line of the output a JSON list of status and output.

steps.py aws runs the words as a command of the AWS command line; steps.py gql URL sends a document and its variables by gql.
"""

import contextlib
import io
import json
import sys


def aws():
    from awscli.clidriver import create_clidriver

    def step(words):
        said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            try:
                status = create_clidriver().main(words)
            except SystemExit as ended:
                status = ended.code
        said.flush()
        return status, said.buffer.getvalue().decode()

    return step


def gql(url):
    import gql as library
    from gql.transport.requests import RequestsHTTPTransport

    client = library.Client(transport=RequestsHTTPTransport(url=url, retries=0, timeout=20))

    def step(words):
        document, variables = words
        try:
            request = library.GraphQLRequest(document, variable_values=variables)
            return 0, json.dumps(client.execute(request))
        except Exception as error:
            return 1, str(error)

    return step


def main():
    step = {"aws": aws, "gql": gql}[sys.argv[1]](*sys.argv[2:])
    out = sys.stdout
    for line in sys.stdin:
        print(json.dumps(step(json.loads(line))), file=out, flush=True)


main()
