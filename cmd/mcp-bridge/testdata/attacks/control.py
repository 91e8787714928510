"""Runs the attacks without the bridge, in a privileged container, to show what they
are worth. Its first process stands in the supervisor's place, with nothing to
protect it, and what a neighbour would have is there too.

Takes the context as JSON on stdin; writes the outcomes as JSON to stdout.
"""

import json
import os
import sys


def main():
    context = json.load(sys.stdin)
    attacker = os.fork()
    if attacker:
        while os.wait()[0] != attacker:  # it reaps orphans too
            pass
        return
    sys.path.insert(0, os.path.dirname(__file__))
    import harness
    import neighbours

    os.setsid()
    harness.CONTEXT.update(context, neighbour_uid=os.getuid())
    harness.CONTEXT["neighbour"] = neighbours.settle()
    harness.CONTEXT["neighbour_inode"] = os.stat("/tmp/neighbour").st_ino
    outcomes = {}
    for subject in context["subjects"]:
        __import__(subject)
        names = [name for name, each in harness.ATTACKS[subject].items() if each.control]
        outcomes.update((f"{subject}/{name}", each) for name, each in harness.run(subject, names).items())
    json.dump(outcomes, sys.stdout)


main()
