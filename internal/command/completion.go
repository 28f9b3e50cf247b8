package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/profile"
)

// completeFlags gives the shells the values of flags with a short list of words, below cmd as well.
func completeFlags(cmd *cobra.Command) {
	for name, words := range flagWordsOf() {
		if cmd.LocalFlags().Lookup(name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before := ""
			if at := strings.LastIndexByte(typed, ','); at >= 0 { // a list
				before = typed[:at+1]
			}
			var fit []string
			for _, word := range words() {
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

// flagWordsOf returns the words of flags. A profile may be a file, too; the shell is told nothing of files here.
func flagWordsOf() map[string]func() []string {
	return map[string]func() []string{
		"profile": profile.Names,
		"state": func() []string {
			var names []string
			for _, s := range journal.AllStates() {
				names = append(names, s.String())
			}
			return names
		},
		"result": func() []string {
			var names []string
			for _, r := range results.All() {
				names = append(names, string(r))
			}
			return names
		},
		"sort":     func() []string { return []string{"created", "finished", "attempts", "sends"} },
		"unit":     func() []string { return []string{audit.UnitMinor, audit.UnitMajor} },
		"our-unit": func() []string { return []string{audit.UnitMinor, audit.UnitMajor} },
	}
}
