# SPDX-License-Identifier: MIT
# Completion of laconic in bash 4.4 or later. The command itself lists the
# candidates.

_laconic()
{
    local rest=${COMP_LINE:0:COMP_POINT} words=() word i
    # Bash splits words at ':' and '=': what follows no space continues a word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
            rest=${rest#"${rest%%[![:space:]]*}"}
            words+=("")
        fi
        if ((i == COMP_CWORD)); then
            word=$rest
        fi
        words[-1]+=$word
        rest=${rest#"$word"}
    done
    # Bash replaces only what follows the last of these characters.
    local breaks=${COMP_WORDBREAKS//[^:=]/} last=${words[-1]} before=
    if [[ -n $breaks ]]; then
        before=${last%"${last##*["$breaks"]}"}
    fi
    local paths=()
    COMPREPLY=()
    while IFS= read -r word; do
        case $word in
        :files) mapfile -t paths < <(compgen -f -- "${last#"$before"}") ;;
        :folders) mapfile -t paths < <(compgen -d -- "${last#"$before"}") ;;
        *) word=${word%%$'\t'*}
           COMPREPLY+=("${word#"$before"}") ;;
        esac
    done < <("${words[0]/#\~/$HOME}" completion --candidates -- \
             "${words[@]:1}" 2>/dev/null)
    if ((${#paths[@]} > 0)); then
        compopt -o filenames
        COMPREPLY+=("${paths[@]}")
    elif [[ ${COMPREPLY-} == *[:=] ]]; then
        compopt -o nospace
    fi
}

complete -o nosort -F _laconic laconic
