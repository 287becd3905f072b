#compdef laconic
# SPDX-License-Identifier: MIT
# Completion of laconic in zsh. The command itself lists the candidates.

_laconic() {
    local -a full open
    local line text paths
    # The word up to the cursor ends the list.
    for line in "${(@f)$(${(Q)words[1]/#\~/$HOME} completion --candidates -- \
            "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        :files) paths=files ;;
        :folders) paths=folders ;;
        *)
            text=${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}
            if [[ ${line%%$'\t'*} == *[:=] ]]; then
                open+=("$text")
            else
                full+=("$text")
            fi ;;
        esac
    done
    local result=1
    (( $#full )) && _describe -V laconic full && result=0
    (( $#open )) && _describe -V laconic open -S '' && result=0
    if [[ -n $paths ]]; then
        compset -P '--[^=]#='
        if [[ $paths == folders ]]; then
            _files -/ && result=0
        else
            _files && result=0
        fi
    fi
    return result
}

# The file is the function where zsh loads it from fpath, and a script where it
# is sourced.
if [[ $funcstack[1] == _laconic ]]; then
    _laconic "$@"
else
    compdef _laconic laconic
fi
