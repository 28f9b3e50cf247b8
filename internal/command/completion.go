package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// completeFlags registers, for cmd and all commands below it, the words that a shell offers for flags with a short list of values.
func completeFlags(cmd *cobra.Command) {
	for name, wordsOf := range flagWordsOf() {
		if cmd.LocalFlags().Lookup(name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before := ""
			if at := strings.LastIndexByte(typed, ','); at >= 0 { // a list
				before = typed[:at+1]
			}
			var fit []string
			for _, word := range wordsOf(cmd) {
				if strings.HasPrefix(before+word, typed) {
					fit = append(fit, before+word)
				}
			}
			return fit, cobra.ShellCompDirectiveNoFileComp
		})
	}
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}

// flagWordsOf returns the words that a shell offers for a flag, by the flag's name. A value may also be another, such as a profile's file; the shell is offered no
// files.
func flagWordsOf() map[string]func(*cobra.Command) []string {
	of := func(words ...string) func(*cobra.Command) []string {
		return func(*cobra.Command) []string { return words }
	}
	var states, made []string
	for _, s := range journal.AllStates() {
		states = append(states, s.String())
	}
	for _, r := range results.All() {
		made = append(made, string(r))
	}
	units := of(audit.UnitMinor, audit.UnitMajor)
	return map[string]func(*cobra.Command) []string{
		"profile": of(profile.Names()...), "state": of(states...), "result": of(made...), "sort": of("created", "finished", "attempts", "sends"),
		"unit": units, "our-unit": units, "secret-header": namesOfHeaders,
	}
}

// namesOfHeaders returns the names of the headers given by -H in the call; it reads no file.
func namesOfHeaders(cmd *cobra.Command) []string {
	var names []string
	given, _ := cmd.Flags().GetStringArray("header") // none if the command has no such flag
	for _, line := range given {
		if name, _, found := strings.Cut(line, ":"); found && words.IsToken(name) && !slices.Contains(names, name) { // cobra reads them twice
			names = append(names, name)
		}
	}
	return names
}
