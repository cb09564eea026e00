"""The engine of the experiments: jobs whose results are on disk, done in several processes, stopped and resumed.

``recipe -> jobs -> results -> report``. It doesn't know what an experiment is about:

* :mod:`recipes` reads a TOML file into a frozen record, :mod:`folder` holds the results of its jobs;
* :mod:`work` does one job, :mod:`schedule` does all in several processes, each when what it needs is there;
* :mod:`timetable` says how long that takes, :mod:`display` shows how far it is;
* :mod:`command` is what the commands have in common: claim the folder, say the plan, work, report;
* :mod:`tokens` counts what a training took, :mod:`report` and :mod:`pictures` are what reports are made with.

No workflow engine is used for it. Snakemake or doit would bring their own scheduling, rules of what is out of date and,
in Snakemake's case, clusters, and would replace :mod:`schedule`, which is 190 lines. But a job here is a function that
tells how far it is and that writes a checkpoint when it is asked to stop, and resumes from it: Snakemake removes what a
job has written that didn't finish, and doit ends the processes of its jobs and doesn't know how far they are.
So the stopping, the time that is left and the settings that only add seeds would still be ours, beside a dependency.
"""
