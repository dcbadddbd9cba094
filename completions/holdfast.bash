# bash completion for holdfast; names of locks come from `holdfast ls`.

_holdfast_names() {
  holdfast "${global[@]}" --log-level off ls 2>/dev/null | sed -e 1d -e 's/  *[0-9]*  *[0-9]*$//'
}

_holdfast() {
  local cur prev command='' word i
  local -a global=()
  cur=${COMP_WORDS[COMP_CWORD]}
  prev=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()

  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      --)
        # What follows is another command with its own completion.
        if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
        return
        ;;
      --url | --namespace | --password-file)
        global+=("$word" "${COMP_WORDS[i + 1]}")
        ((i++))
        ;;
      --log-level) ((i++)) ;;
      run | elect | latch | ls | show | release | revoke | watch | doctor | multi | demo | bench | torture)
        [[ -n $command ]] || command=$word
        ;;
    esac
  done

  case $prev in
    --password-file)
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
      mapfile -t COMPREPLY < <(compgen -W 'embedded redis redis-sentinel redis-cluster redlock zookeeper postgresql postgresql-session postgresql-row mariadb mariadb-session mariadb-row' -- "$cur")
      return
      ;;
    --workload)
      mapfile -t COMPREPLY < <(compgen -W 'mutex fair rw semaphore latch multi election' -- "$cur")
      return
      ;;
    --faults)
      mapfile -t COMPREPLY < <(compgen -W 'none pause-client kill-client pause-server kill-server partition delay cut clock-jump failover script-flush disk-full' -- "$cur")
      return
      ;;
    --url)
      mapfile -t COMPREPLY < <(compgen -W 'sqlite:' -- "$cur")
      return
      ;;
    --wait | --ttl | --grace | --at-least | --lock-delay | --hold | --duration)
      mapfile -t COMPREPLY < <(compgen -W '0s 1s 10s 1m 5m 1h' -- "$cur")
      return
      ;;
    --namespace | --permits | --max | --busy-exit-code | --id | --claim | --buyers | --stock | --processes | --threads | --clients | --seed)
      return
      ;;
  esac

  local common='--url --namespace --password-file --log-level --help'
  local hold='--wait --ttl --grace --lock-delay --busy-exit-code'
  local choices=
  if [[ $cur == -* ]]; then
    case $command in
      '') choices="--version $common" ;;
      run) choices="$hold --fair --shared --permits --max --no-renew --at-least $common" ;;
      elect) choices="$hold --id $common" ;;
      multi) choices="$hold --fair --no-renew --at-least $common" ;;
      latch) choices="--wait --id $common" ;;
      ls | show | doctor) choices="--json $common" ;;
      release) choices="--force --claim --yes $common" ;;
      watch) choices="--json --all $common" ;;
      torture) choices="--start --clients --duration --ttl --workload --faults --seed --json --report $common" ;;
      demo) choices="--buyers --stock --processes --lock $common" ;;
      bench) choices="--threads --processes --locks --mode --hold --duration --json $common" ;;
      *) choices=$common ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
    return
  fi
  case $command in
    '') choices='run elect multi latch ls show release revoke watch doctor demo bench torture' ;;
    multi) [[ $prev != multi ]] || choices=run ;;
    demo) [[ $prev != demo ]] || choices=flash-sale ;;
    torture) [[ $prev != torture ]] || choices='check replay' ;;
    latch) [[ $prev == latch ]] || choices='set down wait count' ;;
  esac
  if [[ -n $choices ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
  elif [[ $command != doctor && $command != demo && $command != bench && $command != torture ]]; then
    local IFS=$'\n'
    mapfile -t COMPREPLY < <(compgen -W "$(_holdfast_names)" -- "$cur")
  fi
}

complete -F _holdfast holdfast
