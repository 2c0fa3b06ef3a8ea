# Completion of `rodeo` for fish; it asks the command itself. `rodeo completion fish` prints this file.

function __rodeo_answer
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (command $words[1] completion answer -- $words[2..-1] "$current" 2>/dev/null)
    set -l directives (string split ' ' -- "$lines[1]")
    if test (count $lines) -gt 1
        printf '%s\n' $lines[2..-1]
    end
    if contains files $directives; or contains directories $directives
        set -l option (string match -r -- '^--[^=]*=' "$current")
        set -l typed (string replace -r -- '^--[^=]*=' '' "$current")
        for name in (__fish_complete_path "$typed")
            if contains files $directives; or string match -q -r -- '/(\t.*)?$' "$name"
                printf '%s\n' "$option$name"
            end
        end
    end
end

complete -c rodeo -f -a '(__rodeo_answer)'
