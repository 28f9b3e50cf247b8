package main

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/persist"
)

// causes are the errors of connections as Go spells them, and in words.
var causes = []struct {
	is   *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\bunexpected EOF\b`), "the connection ended in the middle"},
	{regexp.MustCompile(`(^|: )EOF\b`), "${1}the server closed the connection without an answer"},
	{regexp.MustCompile(`\b(?:read|write) tcp \S+: (?:read|write): connection reset by peer`), "the server reset the connection"},
	{regexp.MustCompile(`\bwrite tcp \S+: write: broken pipe`), "the server closed the connection while the request was sent"},
	{regexp.MustCompile(`\bdial tcp (\S+): connect: connection refused`), "nothing listens at $1 (connection refused)"},
	{regexp.MustCompile(`\bdial tcp: lookup (\S+?)(?: on \S+)?: no such host`), "there is no host $1"},
}

// causeWords says in words why a connection failed.
func causeWords(text string) string {
	for _, c := range causes {
		text = c.is.ReplaceAllString(text, c.text)
	}
	return text
}

// sendingText says who is sending an operation, and when its lease ends; "" if nobody is. The record was prepared by seeing.
func sendingText(rec *persist.Record, now time.Time) string {
	if rec.LeaseOwner == "" {
		return ""
	}
	who := rec.LeaseOwner
	if len(who) == 36 && strings.Count(who, "-") == 4 { // a client's own, which is a UUID
		who = "worker " + who[:8]
	}
	switch {
	case rec.LeaseUntil.IsZero():
		return "sent by " + who
	case !rec.LeaseUntil.After(now):
		return "sent by " + who + ", free now"
	}
	return "sent by " + who + ", free in " + roughly(rec.LeaseUntil.Sub(now)+time.Second-1)
}

// readerLeft reports whether a command that only looks has failed because nobody reads its output any more, as with a pager or head.
func readerLeft(cmd *cobra.Command, err error) bool {
	if cmd == nil || !errors.Is(err, syscall.EPIPE) || errors.As(err, new(*net.OpError)) || errors.As(err, new(*journalFault)) { // of a journal's server
		return false
	}
	switch strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") {
	case "journal list", "journal stuck", "journal show", "journal stats", "journal export", "journal verify", "profile list", "profile show":
		return true
	}
	return false
}

// versionCommand is --version as a command.
func versionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of oncehttp and of the Go toolchain, as --version does.",
		Example: "  oncehttp version",
		Args:    wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.out, "oncehttp %s\n", version())
			return err
		},
	}
}

// findHelp is the command or topic of oncehttp help: one that is named in full, or the only one of that name below another.
func findHelp(root *cobra.Command, args []string) (*cobra.Command, error) {
	found, rest, err := root.Find(args)
	if err == nil && len(rest) == 0 {
		return found, nil
	}
	var paths []string
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if len(args) == 1 && sub.Name() == args[0] {
				found, paths = sub, append(paths, strings.TrimPrefix(sub.CommandPath(), root.Name()+" "))
			}
			below(sub)
		}
	}
	below(root)
	switch len(paths) {
	case 0:
		return nil, fmt.Errorf("no help for %s; see oncehttp --help", clip(strings.Join(args, " ")))
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("%s is the name of several commands: say help %s", clip(args[0]), strings.Join(paths, ", or help "))
}
