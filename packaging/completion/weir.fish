# Completion of weir for fish.

complete -c weir -f
complete -c weir -s h -l help -d 'Say how it is used'
complete -c weir -n __fish_use_subcommand -l version -d 'Print the version'
complete -c weir -n __fish_use_subcommand -a check-config -d 'Say everything that is wrong with a policy'
complete -c weir -n __fish_use_subcommand -a explain -d 'Say why a request would be allowed or denied'
complete -c weir -n __fish_use_subcommand -a fmt -d 'Bring policies into one form, comments kept'
complete -c weir -n __fish_use_subcommand -a schema -d 'Print the JSON Schema of policy files'
complete -c weir -n __fish_use_subcommand -a serve -d 'Run the service'

complete -c weir -n '__fish_seen_subcommand_from check-config' -F
complete -c weir -n '__fish_seen_subcommand_from check-config' -l json -d 'Print a JSON array'
complete -c weir -n '__fish_seen_subcommand_from check-config' -l strict -d 'End with 1 on warnings, too'

complete -c weir -n '__fish_seen_subcommand_from explain' -s c -l config -r -F -d 'The policy'
complete -c weir -n '__fish_seen_subcommand_from explain' -l request -x -d 'The request as JSON'
complete -c weir -n '__fish_seen_subcommand_from explain' -l json -d 'Print JSON'

complete -c weir -n '__fish_seen_subcommand_from fmt' -F
complete -c weir -n '__fish_seen_subcommand_from fmt' -l check -d 'Change nothing; end with 1 if something would change'
complete -c weir -n '__fish_seen_subcommand_from fmt' -l stdout -d 'Print the text; change nothing'

complete -c weir -n '__fish_seen_subcommand_from serve' -s c -l config -r -F -d 'The policy'
complete -c weir -n '__fish_seen_subcommand_from serve' -l threads -x -d 'How many threads serve'
complete -c weir -n '__fish_seen_subcommand_from serve' -l log -x -a 'text json' -d 'How the log is written'
complete -c weir -n '__fish_seen_subcommand_from serve' -l check -d 'Say whether it would start'
complete -c weir -n '__fish_seen_subcommand_from serve' -l force-reload -d 'Take changes that look like accidents'
