"""A job that every host starts and one runs, as a task queue's periodic task: the others leave at once."""
import functools
import multiprocessing
import sys
import tempfile

import holdfast

url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:{tempfile.mkdtemp()}/locks.db"


def singleton(name, **options):
    """Decorates a task: it runs once at a time in the whole cluster; where it is running already it returns None."""
    def decorate(task):
        @functools.wraps(task)
        def run(*arguments):
            with holdfast.connect(url) as client:
                lease = client.lock(name, **options).try_acquire()
                if lease is None:
                    return None
                with lease:
                    return task(lease, *arguments)
        return run
    return decorate


@singleton("jobs/report", ttl=10)
def report(lease, running, done):
    running.set()
    done.wait()  # the others come meanwhile
    lease.check()  # raises Lost: someone else may have begun
    return lease.fence


def main():
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        running, done = manager.Event(), manager.Event()
        with context.Pool(4) as hosts:
            first = hosts.apply_async(report, (running, done))
            running.wait()
            others = [hosts.apply(report, (running, done)) for _ in range(3)]
            done.set()
            print("ran with a fence:", first.get() > 0, "- the others:", others)


if __name__ == "__main__":
    main()
