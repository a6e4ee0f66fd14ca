# Completion of weir for fish.

complete -c weir -f
complete -c weir -s h -l help -d 'Say how it is used'
complete -c weir -n __fish_use_subcommand -l version -d 'Print the version'
complete -c weir -n __fish_use_subcommand -a calibrate -d 'Learn from access logs which limits would fit'
complete -c weir -n __fish_use_subcommand -a check-config -d 'Say everything that is wrong with a policy'
complete -c weir -n __fish_use_subcommand -a compare -d 'Show what a limit means, by every algorithm'
complete -c weir -n __fish_use_subcommand -a explain -d 'Say why a request would be allowed or denied'
complete -c weir -n __fish_use_subcommand -a fmt -d 'Bring policies into one form, comments kept'
complete -c weir -n __fish_use_subcommand -a replay -d 'Run access logs through a policy, in virtual time'
complete -c weir -n __fish_use_subcommand -a schema -d 'Print the JSON Schema of policy files'
complete -c weir -n __fish_use_subcommand -a serve -d 'Run the service'
complete -c weir -n __fish_use_subcommand -a simulate -d 'Run a fleet in a simulated world, and judge what it did'

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

complete -c weir -n '__fish_seen_subcommand_from calibrate' -F
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l format -x -a 'auto combined envoy alb caddy csv jsonl' -d 'What the logs are'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l column -x -d 'Which column of the log says what'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l horizon -x -d 'How much later than its time a line may come'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l max-bad -x -d 'End with 1 if more lines had to be left out'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l threads -x -d 'How many threads work'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l key -x -a 'ip user ip+path' -d 'Who is counted'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l quantile -x -d 'Of all clients, this part shall never be denied'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l margin -x -d 'How much more than that a limit allows'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l policy -r -F -d 'Write a policy in shadow mode'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l html -r -F -d 'Write a page that any browser shows'
complete -c weir -n '__fish_seen_subcommand_from calibrate' -l json -d 'Print JSON'

complete -c weir -n '__fish_seen_subcommand_from compare' -l burst -x -d 'What buckets let through at once'
complete -c weir -n '__fish_seen_subcommand_from compare' -l traffic -r -F -a 'steady poisson burst boundary late-window diurnal' -d 'What comes'
complete -c weir -n '__fish_seen_subcommand_from compare' -l load -x -d 'How much comes, as a multiple of the limit'
complete -c weir -n '__fish_seen_subcommand_from compare' -l duration -x -d 'How long it comes'
complete -c weir -n '__fish_seen_subcommand_from compare' -l seed -x -d 'Other random arrivals'
complete -c weir -n '__fish_seen_subcommand_from compare' -l advise -d 'Ask a few questions, and say which to take'
complete -c weir -n '__fish_seen_subcommand_from compare' -l answer -x -d 'What need not be asked'
complete -c weir -n '__fish_seen_subcommand_from compare' -l svg -r -F -d 'Write a picture for documents'
complete -c weir -n '__fish_seen_subcommand_from compare' -l html -r -F -d 'Write a page that any browser shows'
complete -c weir -n '__fish_seen_subcommand_from compare' -l json -d 'Print JSON'

complete -c weir -n '__fish_seen_subcommand_from replay' -F
complete -c weir -n '__fish_seen_subcommand_from replay' -l format -x -a 'auto combined envoy alb caddy csv jsonl' -d 'What the logs are'
complete -c weir -n '__fish_seen_subcommand_from replay' -l column -x -d 'Which column of the log says what'
complete -c weir -n '__fish_seen_subcommand_from replay' -l horizon -x -d 'How much later than its time a line may come'
complete -c weir -n '__fish_seen_subcommand_from replay' -l max-bad -x -d 'End with 1 if more lines had to be left out'
complete -c weir -n '__fish_seen_subcommand_from replay' -l threads -x -d 'How many threads work'
complete -c weir -n '__fish_seen_subcommand_from replay' -s c -l config -r -F -d 'The policy'
complete -c weir -n '__fish_seen_subcommand_from replay' -l against -r -F -d 'Another policy'
complete -c weir -n '__fish_seen_subcommand_from replay' -l decisions -r -F -d 'Write one line of JSON for each request'
complete -c weir -n '__fish_seen_subcommand_from replay' -l fail-if-denied -x -d 'End with 1 if more requests were denied'
complete -c weir -n '__fish_seen_subcommand_from replay' -l top -x -d 'How many of those denied most are named'
complete -c weir -n '__fish_seen_subcommand_from replay' -l spread -d 'Spread requests of the same second over it'
complete -c weir -n '__fish_seen_subcommand_from replay' -l html -r -F -d 'Write a page that any browser shows'
complete -c weir -n '__fish_seen_subcommand_from replay' -l json -d 'Print JSON'

complete -c weir -n '__fish_seen_subcommand_from simulate' -F
complete -c weir -n '__fish_seen_subcommand_from simulate' -l seed -x -d 'Another course of events'
complete -c weir -n '__fish_seen_subcommand_from simulate' -l seeds -x -d 'So many courses of events'
complete -c weir -n '__fish_seen_subcommand_from simulate' -l threads -x -d 'How many threads work'
complete -c weir -n '__fish_seen_subcommand_from simulate' -l svg -r -F -d 'Write a picture for documents'
complete -c weir -n '__fish_seen_subcommand_from simulate' -l html -r -F -d 'Write a page that any browser shows'
complete -c weir -n '__fish_seen_subcommand_from simulate' -l json -d 'Print JSON'
