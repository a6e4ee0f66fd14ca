# Completion of weir for bash.

_weir() {
  local cur prev words cword
  _init_completion -n = || return

  local command= word
  for word in "${words[@]:1:cword-1}"; do
    case $word in
      -*) ;;
      *)
        command=$word
        break
        ;;
    esac
  done

  case $prev in
    -c | --config)
      _filedir '@(yaml|yml)'
      return
      ;;
    --log)
      mapfile -t COMPREPLY < <(compgen -W "text json" -- "$cur")
      return
      ;;
    --threads)
      mapfile -t COMPREPLY < <(compgen -W "{1..$(nproc)}" -- "$cur")
      return
      ;;
    --format)
      mapfile -t COMPREPLY < <(compgen -W "auto combined envoy alb caddy csv jsonl" -- "$cur")
      return
      ;;
    --traffic)
      mapfile -t COMPREPLY < <(compgen -W "steady poisson burst boundary late-window diurnal" -- "$cur")
      return
      ;;
    --against)
      _filedir '@(yaml|yml)'
      return
      ;;
    --html | --svg | --policy | --decisions)
      _filedir
      return
      ;;
    --answer | --burst | --column | --duration | --fail-if-denied | --horizon | --key | --load | \
      --margin | --max-bad | --quantile | --request | --seed | --seeds | --top)
      return
      ;;
  esac

  local options
  case $command in
    "")
      options="-h --help --version calibrate check-config compare explain fmt replay schema serve
        simulate"
      ;;
    calibrate)
      options="-h --help --format --column --horizon --max-bad --threads --key --quantile --margin
        --policy --html --json"
      ;;
    check-config) options="-h --help --json --strict" ;;
    compare)
      options="-h --help --burst --traffic --load --duration --seed --advise --answer --svg --html
        --json"
      ;;
    explain) options="-h --help -c --config --request --json" ;;
    fmt) options="-h --help --check --stdout" ;;
    replay)
      options="-h --help --format --column --horizon --max-bad --threads -c --config --against
        --decisions --fail-if-denied --top --spread --html --json"
      ;;
    schema) options="-h --help" ;;
    serve) options="-h --help -c --config --threads --log --check --force-reload" ;;
    simulate) options="-h --help --seed --seeds --threads --svg --html --json" ;;
    *) return ;;
  esac
  if [[ $cur == -* || -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  elif [[ $command == check-config || $command == fmt || $command == simulate ]]; then
    _filedir '@(yaml|yml)'
  elif [[ $command == calibrate || $command == replay ]]; then
    _filedir
  fi
} &&
  complete -F _weir weir
