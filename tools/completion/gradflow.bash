# Completion of gradflow's commands, options and files for bash.
_gradflow() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options i command=
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then
      command=${COMP_WORDS[i]}
      break
    fi
  done

  case $command in
    "") options="run bench inspect gradients checkpoint freeze quantize ops convert view edit test --version" ;;
    run) options="--tag --signature --checkpoint --feed --fetch --target --threads --memory-limit --fast --int8 --allow-read --allow-write --raw-prints --graph-limit --timeout --trace --report --report-tensors --plugin" ;;
    bench) options="--tag --signature --checkpoint --feed --fetch --target --threads --memory-limit --fast --int8 --allow-read --allow-write --raw-prints --graph-limit --repeat --json --progress --report --plugin" ;;
    inspect) options="--tag --plan --fast --int8 --timeout --memory-limit --graph-limit --plugin" ;;
    gradients) options="--tag --of --wrt --output --check --recompute --timeout --memory-limit --allow-read --allow-write --graph-limit --plugin" ;;
    checkpoint) options="--tensor --output --diff --timeout --memory-limit" ;;
    freeze) options="--tag --signature --outputs --output --timeout --memory-limit --graph-limit --plugin" ;;
    quantize) options="--tag --data --method --percentile --bias-correction --output --report --timeout --memory-limit --graph-limit --plugin" ;;
    convert) options="--tag --timeout --memory-limit --graph-limit" ;;
    view) options="--tag --output --diff --timeout --memory-limit --graph-limit --plugin" ;;
    edit) options="--tag --output --port --threads --memory-limit --timeout --allow-read --allow-write --graph-limit --plugin" ;;
    ops) options="--format --of --plugin" ;;
    test) options="--update --atol --rtol --ulps --threads --memory-limit --graph-limit --timeout --allow-read --allow-write --plugin" ;;
  esac
  options+=" --help"

  case $previous in
    --threads | --memory-limit | --timeout | --repeat | --port | --target | --tensor | --outputs | --wrt | --check | --feed | --fetch | --atol | --rtol | --ulps | --report-tensors | --tag | --signature | --data | --percentile) return ;;
    --of) [[ $command == ops ]] || return ;;
    --allow-read | --allow-write)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --format)
      mapfile -t COMPREPLY < <(compgen -W "text pbtxt" -- "$current")
      return
      ;;
  esac
  if [[ -z $command || $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ $command == ops && $previous != --plugin && $previous != --of ]]; then
    options=$(gradflow ops 2>/dev/null | sed -n 's/^\([A-Z][A-Za-z0-9]*\)(.*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _gradflow gradflow
