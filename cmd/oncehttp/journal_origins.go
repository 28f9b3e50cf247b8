package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// allOrigins is the entry of all origins.
const allOrigins = "*"

func journalOriginsCommand(f *journalFlags, s streams) *cobra.Command {
	var remove string
	var yes bool
	cmd := &cobra.Command{
		Use:   "origins [ORIGIN]...",
		Short: "Tell where clients send with credentials, or say that they do no longer",
		Long: `Tell of each ORIGIN whether clients of the journal send there with credentials that
no journal keeps (Authorize, or --auth of work). A client without them sends
nothing there: its calls are refused, and what is pending it leaves alone.

With --remove such an origin is taken off, spelled as the refusal spells it: also
https://*.example.com, or * for all. Then every client sends there, with
credentials or without. A client that has them writes its origins again when it
starts. It asks first, or wants --yes.`,
		Example: `  oncehttp journal origins https://api.example.com --journal @journal.url
  oncehttp journal origins --remove https://api.example.com --journal @journal.url`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.hasAccount:
				return errors.New("origins hold for all accounts; leave --account out")
			case (remove == "") == (len(args) == 0):
				return errors.New("want ORIGIN..., or --remove ORIGIN")
			}
			entries, err := originEntries(append(args, remove)[:max(len(args), 1)])
			if err != nil {
				return err
			}
			ses, err := f.open(oncehttp.Config{})
			if err != nil {
				return err
			}
			if remove != "" {
				return joinExit(removeOrigin(cmd.Context(), ses, entries[0], s, yes), ses.close())
			}
			return joinExit(tellOrigins(cmd.Context(), ses, args, entries, s), ses.close())
		},
	}
	cmd.Flags().StringVar(&remove, "remove", "", "take this origin off")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// originEntries spells origins as the journal has them.
func originEntries(args []string) (entries []string, err error) {
	for _, arg := range args {
		if arg == allOrigins {
			entries = append(entries, allOrigins)
			continue
		}
		o, err := request.ParseOrigins([]string{arg})
		if err != nil {
			return nil, fmt.Errorf("%s: want an origin, such as https://api.example.com", clip(arg))
		}
		entries = append(entries, o.Entries()...)
	}
	return entries, nil
}

// tellOrigins prints a line for each origin.
func tellOrigins(ctx context.Context, ses *session, args, entries []string, s streams) error {
	standing, err := ses.journal.Fact(ctx, persist.FactOrigins, nil, nil)
	if err != nil {
		return journalError(ses.place.name, err)
	}
	for i, entry := range entries {
		how := "no client has said that it sends there with credentials"
		if found := request.OriginSet(standing).Find(entry); found != "" {
			how = "with credentials only (" + found + ")"
		}
		say(s.out, "%s: %s", args[i], how)
	}
	return nil
}

// removeOrigin takes an entry off, whatever others add meanwhile.
func removeOrigin(ctx context.Context, ses *session, entry string, s streams, yes bool) error {
	standing, err := ses.journal.Fact(ctx, persist.FactOrigins, nil, nil)
	if err != nil {
		return journalError(ses.place.name, err)
	}
	if len(standing) == 0 || entry != allOrigins && !request.OriginSet(standing).Has(entry) {
		return fmt.Errorf("%s: no client of the journal has said that it sends there with credentials", entry)
	}
	if err := s.confirm(yes, "clients without credentials would send to "+entry+", and what they get there ends operations"); err != nil {
		return err
	}
	for {
		next := request.OriginSet(standing).Without(entry)
		if entry == allOrigins {
			next = request.OriginSet(nil).With()
		}
		if standing, err = ses.journal.Fact(ctx, persist.FactOrigins, standing, next); err != nil {
			return journalError(ses.place.name, err)
		}
		if string(standing) == string(next) {
			say(s.out, "removed: %s", entry)
			return nil
		}
	}
}
