package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// allOrigins is the entry of all origins.
const allOrigins = "*"

// originsCommand returns the command oncehttp journal origins.
func originsCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var remove string
	var yes bool
	cmd := &cobra.Command{
		Use:   "origins ORIGIN...",
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
			case f.HasAccount:
				return errors.New("origins hold for all accounts; leave --account out")
			case (remove == "") == (len(args) == 0):
				return errors.New("want ORIGIN..., or --remove ORIGIN")
			}
			entries, err := originEntries(append(args, remove)[:max(len(args), 1)]) // args, or remove alone
			if err != nil {
				return err
			}
			ses, err := f.Open(oncehttp.Config{})
			if err != nil {
				return err
			}
			if remove != "" {
				return terminal.JoinExit(removeOrigin(cmd.Context(), ses, entries[0], s, yes), ses.Close())
			}
			return terminal.JoinExit(tellOrigins(cmd.Context(), ses, args, entries, s), ses.Close())
		},
	}
	cmd.Flags().StringVar(&remove, "remove", "", "take this origin off")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// originEntries returns origins in the spelling of the journal, with the port. "*" stands for all origins. An error names the wrong one.
func originEntries(args []string) (entries []string, err error) {
	for _, arg := range args {
		if arg == allOrigins {
			entries = append(entries, allOrigins)
			continue
		}
		o, err := request.ParseOrigins([]string{arg})
		if err != nil {
			return nil, fmt.Errorf("%s: want an origin, such as https://api.example.com", words.Clip(arg))
		}
		entries = append(entries, o.Entries()...)
	}
	return entries, nil
}

// tellOrigins prints a line for each origin: whether the journal allows sends to it only with credentials. args are the origins as the user wrote
// them, entries the same as the journal keeps them.
func tellOrigins(ctx context.Context, ses *session.Session, args, entries []string, s terminal.Streams) error {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil) // nil, nil: it only reads
	if err != nil {
		return place.JournalError(ses.Place.Name, err)
	}
	for i, entry := range entries {
		how := "no client has said that it sends there with credentials"
		if found := request.OriginSet(standing).Find(entry); found != "" {
			how = "with credentials only (" + found + ")"
		}
		terminal.Say(s.Out, "%s: %s", args[i], how)
	}
	return nil
}

// removeOrigin takes an origin off the list of those that clients send to with credentials only, after a question. Other processes may change the list meanwhile: it is
// tried again until no change came between.
func removeOrigin(ctx context.Context, ses *session.Session, entry string, s terminal.Streams, yes bool) error {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil) // nil, nil: it only reads
	if err != nil {
		return place.JournalError(ses.Place.Name, err)
	}
	if len(standing) == 0 || entry != allOrigins && !request.OriginSet(standing).Has(entry) {
		return fmt.Errorf("%s: no client of the journal has said that it sends there with credentials", entry)
	}
	if err := s.Confirm(yes, "clients without credentials would send to "+entry+", and what they get there ends operations"); err != nil {
		return err
	}
	for {
		next := request.OriginSet(standing).Without(entry)
		if entry == allOrigins {
			next = request.OriginSet(nil).With() // the empty set
		}
		// Fact writes next only in place of standing, and returns what the journal has then.
		if standing, err = ses.Journal.Fact(ctx, persist.FactOrigins, standing, next); err != nil {
			return place.JournalError(ses.Place.Name, err)
		}
		if string(standing) == string(next) {
			terminal.Say(s.Out, "removed: %s", entry)
			return nil
		}
	}
}
