# SPDX-License-Identifier: MIT
# Completion of laconic in fish. The command itself lists the candidates.

function __laconic_candidates
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -e words[1]
    for line in ($program completion --candidates -- $words "$word" 2>/dev/null)
        switch $line
            case ':files' ':folders'
                # After "--option=" the path is the value.
                set -l option (string match -r -- '^--[^=]*=' $word)
                set -l value (string replace -r -- '^--[^=]*=' '' $word)
                set -l paths (__fish_complete_path $value)
                if test $line = ':folders'
                    set paths (__fish_complete_directories $value)
                end
                for path in $paths
                    printf '%s\n' "$option$path"
                end
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c laconic -f -a '(__laconic_candidates)'
