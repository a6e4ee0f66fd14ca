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
    --request)
      return
      ;;
  esac

  local options
  case $command in
    "") options="-h --help --version check-config explain fmt schema serve" ;;
    check-config) options="-h --help --json --strict" ;;
    explain) options="-h --help -c --config --request --json" ;;
    fmt) options="-h --help --check --stdout" ;;
    schema) options="-h --help" ;;
    serve) options="-h --help -c --config --threads --log --check --force-reload" ;;
    *) return ;;
  esac
  if [[ $cur == -* || -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  elif [[ $command == check-config || $command == fmt ]]; then
    _filedir '@(yaml|yml)'
  fi
} &&
  complete -F _weir weir
