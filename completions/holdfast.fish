# fish completion for holdfast; names of locks come from `holdfast ls --names`, of the engine that
# stands on the line.

function __holdfast_names
    set -l words (commandline -opc)
    set -l global
    for option in --url --namespace --password-file
        set -l at (contains -i -- $option $words)
        and set -a global $option $words[(math $at + 1)]
    end
    holdfast $global --log-level off ls --names 2>/dev/null | string match -v -- '-*'
end

# The words behind --: the command that is run while the lock is held.
function __holdfast_inner
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    or return 1
    set -e words[1..$at]
    complete -C "$words "(commandline -ct)
end

set -l commands run acquire renew elect multi latch ls show release revoke watch doctor redis-library serve demo bench torture

complete -c holdfast -f
complete -c holdfast -l url -x -a 'sqlite: redis:// rediss:// valkey:// valkeys:// redis+sentinel:// redis+cluster:// redlock:// zookeeper:// etcd:// etcds:// postgresql:// mariadb:// mysql:// memory:' -d 'The engine'
complete -c holdfast -l namespace -x -d 'Names in different namespaces never conflict'
complete -c holdfast -l password-file -r -F -d 'Its first line is the password'
complete -c holdfast -l log-level -x -a 'off error warn info debug' -d 'What to tell on stderr'
complete -c holdfast -l help -s h -d 'What it does, by example'
complete -c holdfast -l version -d 'Print the version'

set -l none "not __fish_seen_subcommand_from $commands"
complete -c holdfast -n $none -a run -d 'Hold a lock while a command runs'
complete -c holdfast -n $none -a acquire -d 'Take a lock for a pipeline'
complete -c holdfast -n $none -a renew -d 'Renew the lock of a token'
complete -c holdfast -n $none -a elect -d 'Run a command while leader'
complete -c holdfast -n $none -a multi -d 'Take several locks, all or nothing'
complete -c holdfast -n $none -a latch -d 'A count-down latch'
complete -c holdfast -n $none -a ls -d 'Names that are held or waited for'
complete -c holdfast -n $none -a show -d 'Holders and waiters of a name'
complete -c holdfast -n $none -a release -d 'By a token, or by force'
complete -c holdfast -n $none -a revoke -d 'End a lock safely'
complete -c holdfast -n $none -a watch -d 'A line per event'
complete -c holdfast -n $none -a doctor -d 'Check the engine'
complete -c holdfast -n $none -a redis-library -d 'The functions for Redis'
complete -c holdfast -n $none -a serve -d 'A live page, metrics and JSON'
complete -c holdfast -n $none -a demo -d 'A flash sale'
complete -c holdfast -n $none -a bench -d 'Measure an engine'
complete -c holdfast -n $none -a torture -d 'Real clients, real faults'

set -l named '__fish_seen_subcommand_from run acquire elect multi latch ls show release revoke watch'
complete -c holdfast -n "$named; and not contains -- -- (commandline -opc)" -a '(__holdfast_names)' -d Lock
complete -c holdfast -n 'contains -- -- (commandline -opc)' -a '(__holdfast_inner)'

set -l hold '__fish_seen_subcommand_from run elect multi'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire elect multi latch' -l wait -x -d 'Give up after'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire renew elect multi' -l ttl -x -d 'Kept without a sign of life'
complete -c holdfast -n $hold -l grace -x -d 'Between SIGTERM and the end'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire elect multi' -l lock-delay -x -d 'Stays blocked after an abnormal end'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire elect multi' -l busy-exit-code -x -d 'Instead of 124'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire elect multi' -l quiet -d 'Nothing on stderr when busy'
complete -c holdfast -n $hold -l pass-url -d 'Holdfast inside the command uses the same engine'
complete -c holdfast -n $hold -l pass-notify -d 'The command talks to systemd'

set -l locking '__fish_seen_subcommand_from run multi'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire multi' -l fair -d 'First come, first served'
complete -c holdfast -n $locking -l no-renew -d 'Take it once, for ttl'
complete -c holdfast -n $locking -l at-least -x -d 'Keep it so long'
complete -c holdfast -n $locking -l at-most -x -d 'End the command then'

complete -c holdfast -n '__fish_seen_subcommand_from run acquire' -l shared -d 'A reader'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire' -l permits -x -d 'How many'
complete -c holdfast -n '__fish_seen_subcommand_from run acquire' -l max -x -d 'Of how many'
complete -c holdfast -n '__fish_seen_subcommand_from elect latch' -l id -x -d 'Who we are; counts once'
complete -c holdfast -n '__fish_seen_subcommand_from elect' -l listen -x -d 'Answer HTTP'
complete -c holdfast -n '__fish_seen_subcommand_from multi' -a run
complete -c holdfast -n '__fish_seen_subcommand_from latch' -a 'set down wait count'

complete -c holdfast -n '__fish_seen_subcommand_from acquire ls show watch doctor bench' -l json -d 'For programs'
complete -c holdfast -n '__fish_seen_subcommand_from ls' -l names -d 'A name a line'
complete -c holdfast -n '__fish_seen_subcommand_from watch' -l all -d 'Renewals too'
complete -c holdfast -n '__fish_seen_subcommand_from serve' -l listen -x -a '127.0.0.1:9464 0.0.0.0:9464' -d 'Where'
complete -c holdfast -n '__fish_seen_subcommand_from serve' -l token-file -r -F -d 'Its first line is needed by clients'
complete -c holdfast -n '__fish_seen_subcommand_from serve' -l allow-revoke -d 'May end a hold'
complete -c holdfast -n '__fish_seen_subcommand_from serve' -l allow-host -x -d 'Another name of this host'
complete -c holdfast -n '__fish_seen_subcommand_from release' -l token -x -d 'Of acquire'
complete -c holdfast -n '__fish_seen_subcommand_from acquire renew release' -l token-file -r -F -d 'The file of the token'
complete -c holdfast -n '__fish_seen_subcommand_from release' -l force -d 'Yes, by force'
complete -c holdfast -n '__fish_seen_subcommand_from release' -l yes -d 'Do not ask'
complete -c holdfast -n '__fish_seen_subcommand_from release' -l claim -x -d 'Only this holder'

complete -c holdfast -n '__fish_seen_subcommand_from demo' -a flash-sale
complete -c holdfast -n '__fish_seen_subcommand_from demo' -l buyers -x -d 'In all'
complete -c holdfast -n '__fish_seen_subcommand_from demo' -l stock -x -d Items
complete -c holdfast -n '__fish_seen_subcommand_from demo bench' -l processes -x -d 'How many'
complete -c holdfast -n '__fish_seen_subcommand_from demo' -l lock -x -a 'none mutex fair rw semaphore'

set -l bench '__fish_seen_subcommand_from bench'
complete -c holdfast -n $bench -l threads -x -d 'In each process'
complete -c holdfast -n $bench -l locks -x -a 'own same zipf'
complete -c holdfast -n $bench -l mode -x -a 'mutex fair rw:90 semaphore:8'
complete -c holdfast -n $bench -l hold -x -d 'How long each is held'
complete -c holdfast -n $bench -l duration -x -d 'Of the measurement'

complete -c holdfast -n '__fish_seen_subcommand_from torture' -a 'check replay'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l start -x -a 'embedded redis redis-sentinel redis-cluster redlock zookeeper etcd etcd-cluster postgresql postgresql-session postgresql-row mariadb mariadb-session mariadb-row'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l clients -x -d Processes
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l duration -x -d 'How long'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l ttl -x -d 'Of the locks'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l workload -x -a 'mutex fair rw semaphore latch multi election'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l faults -x -a 'none pause-client kill-client pause-server kill-server partition delay cut clock-jump failover script-flush disk-full stop-at-call kill-at-call pause-others kill-others truncate garble'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l seed -x -d 'Of the schedule'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l json -r -d 'The whole history'
complete -c holdfast -n '__fish_seen_subcommand_from torture' -l report -r -d 'A page with a timeline'
