# bash completion for holdfast; names of locks come from `holdfast ls --names`.

# Puts the names that begin with $cur into COMPREPLY, quoted for the shell. Others choose the names:
# they are never expanded, as compgen -W would do it.
_holdfast_names() {
  local name quoted
  while IFS= read -r name; do
    printf -v quoted %q "$name"
    if [[ $name != -* && ($name == "$cur"* || $quoted == "$cur"*) ]]; then COMPREPLY+=("$quoted"); fi
  done < <(holdfast "${global[@]}" --log-level off ls --names 2>/dev/null)
  # bash replaces only what follows the last colon.
  if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$cur"; fi
}

_holdfast() {
  local cur prev command='' word i
  local -a global=() words=("${COMP_WORDS[@]}")
  local cword=$COMP_CWORD
  # A URL and many names have colons, at which bash cuts words.
  if declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref -n := words cword
  fi
  cur=${words[cword]}
  prev=${words[cword - 1]}
  COMPREPLY=()

  for ((i = 1; i < cword; i++)); do
    word=${words[i]}
    case $word in
      --)
        # What follows is another command with its own completion.
        for ((i = 1; i < COMP_CWORD; i++)); do
          if [[ ${COMP_WORDS[i]} == -- ]]; then break; fi
        done
        if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
        return
        ;;
      --url | --namespace | --password-file)
        global+=("$word" "${words[i + 1]}")
        ((i++))
        ;;
      --log-level) ((i++)) ;;
      run | acquire | renew | elect | latch | ls | show | release | revoke | watch | doctor | redis-library | serve | multi | demo | bench | torture)
        [[ -n $command ]] || command=$word
        ;;
    esac
  done

  case $prev in
    --password-file | --token-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    --log-level)
      mapfile -t COMPREPLY < <(compgen -W 'off error warn info debug' -- "$cur")
      return
      ;;
    --lock)
      mapfile -t COMPREPLY < <(compgen -W 'none mutex fair rw semaphore' -- "$cur")
      return
      ;;
    --locks)
      mapfile -t COMPREPLY < <(compgen -W 'own same zipf' -- "$cur")
      return
      ;;
    --mode)
      mapfile -t COMPREPLY < <(compgen -W 'mutex fair rw:90 semaphore:8' -- "$cur")
      return
      ;;
    --start)
      mapfile -t COMPREPLY < <(compgen -W 'embedded redis redis-sentinel redis-cluster redlock zookeeper etcd etcd-cluster postgresql postgresql-session postgresql-row mariadb mariadb-session mariadb-row' -- "$cur")
      return
      ;;
    --workload)
      mapfile -t COMPREPLY < <(compgen -W 'mutex fair rw semaphore latch multi election' -- "$cur")
      return
      ;;
    --faults)
      mapfile -t COMPREPLY < <(compgen -W 'none pause-client kill-client pause-server kill-server partition delay cut clock-jump failover script-flush disk-full stop-at-call kill-at-call pause-others kill-others truncate garble' -- "$cur")
      return
      ;;
    --url)
      mapfile -t COMPREPLY < <(compgen -W 'sqlite: redis:// rediss:// valkey:// valkeys:// redis+sentinel:// redis+cluster:// redlock:// zookeeper:// etcd:// etcds:// postgresql:// mariadb:// mysql:// memory:' -- "$cur")
      return
      ;;
    --wait | --ttl | --grace | --at-least | --at-most | --lock-delay | --hold | --duration)
      mapfile -t COMPREPLY < <(compgen -W '0s 1s 10s 1m 5m 1h' -- "$cur")
      return
      ;;
    --listen)
      mapfile -t COMPREPLY < <(compgen -W '127.0.0.1:9464 0.0.0.0:9464 [::1]:9464' -- "$cur")
      return
      ;;
    --namespace | --allow-host | --permits | --max | --busy-exit-code | --id | --claim | --token | --buyers | --stock | --processes | --threads | --clients | --seed)
      return
      ;;
  esac

  local common='--url --namespace --password-file --log-level --help'
  local hold='--wait --ttl --grace --lock-delay --busy-exit-code --quiet --pass-url --pass-notify'
  local choices=
  if [[ $cur == -* ]]; then
    case $command in
      '') choices="--version $common" ;;
      run) choices="$hold --fair --shared --permits --max --no-renew --at-least --at-most $common" ;;
      acquire) choices="--wait --ttl --lock-delay --busy-exit-code --quiet --fair --shared --permits --max --token-file --json $common" ;;
      renew) choices="--ttl --token-file $common" ;;
      elect) choices="$hold --id --listen $common" ;;
      multi) choices="$hold --fair --no-renew --at-least --at-most $common" ;;
      latch) choices="--wait --id $common" ;;
      ls) choices="--json --names $common" ;;
      show | doctor) choices="--json $common" ;;
      release) choices="--token --token-file --force --claim --yes $common" ;;
      watch) choices="--json --all $common" ;;
      serve) choices="--listen --token-file --allow-revoke --allow-host $common" ;;
      torture) choices="--start --clients --duration --ttl --workload --faults --seed --json --report $common" ;;
      demo) choices="--buyers --stock --processes --lock $common" ;;
      bench) choices="--threads --processes --locks --mode --hold --duration --json $common" ;;
      *) choices=$common ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
    return
  fi
  case $command in
    '') choices='run acquire renew elect multi latch ls show release revoke watch doctor redis-library serve demo bench torture' ;;
    multi) [[ $prev != multi ]] || choices=run ;;
    demo) [[ $prev != demo ]] || choices=flash-sale ;;
    torture) [[ $prev != torture ]] || choices='check replay' ;;
    latch) [[ $prev == latch ]] || choices='set down wait count' ;;
  esac
  if [[ -n $choices ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
  elif [[ $command != renew && $command != doctor && $command != redis-library && $command != serve && $command != demo && $command != bench && $command != torture ]]; then
    _holdfast_names
  fi
}

complete -F _holdfast holdfast
