"""The engine of the experiments: jobs whose results are on disk, done in several processes, stopped and resumed.

``recipe -> jobs -> results -> report``. It doesn't know what an experiment is about:

* :mod:`recipes` reads a TOML file into a frozen record, :mod:`folder` holds the results of its jobs;
* :mod:`work` does one job and counts its tokens, :mod:`schedule` does all, each when what it needs is there;
* :mod:`timetable` says how long that takes, and shows how far it is;
* :mod:`command` is what the commands have in common: claim the folder, say the plan, work, report;
* :mod:`report` and :mod:`pictures` are what reports are made with.

Snakemake would remove what a job has written that didn't finish, and doit would end its process; a job here writes a
checkpoint when it is asked to stop and resumes from it. So there is no workflow engine underneath.
"""
