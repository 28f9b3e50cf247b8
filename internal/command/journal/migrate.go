package journal

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// migrateCommand returns the command oncehttp journal migrate.
func migrateCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "migrate [URL]",
		Short: "Make or update the tables of a journal on a database server",
		Long: `Make the tables of a journal on a database server, or bring them to the version
that this program knows. Any number of processes may do so at once; where nothing
is to be done, nothing is. No other command changes the tables. --print shows the
SQL, for administrators who run it themselves, and connects to nothing.

The URL may stand here or in --journal. See oncehttp help journals.`,
		Example: `  oncehttp journal migrate postgres://shop@db.internal/shop
  oncehttp journal migrate postgres://shop@db.internal/shop --print > journal.sql`,
		Args: settings.WantArgs(0, 1, "one URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := placeOf(f, args)
			if err != nil {
				return err
			}
			if at.IsFile() {
				return fmt.Errorf("journal %s: a file is made where it is first used, and needs no migration; migrate takes a URL", at.Name)
			}
			e := at.Engine()
			switch {
			case e.Migrate == nil: // this kind of server has no tables
				if err := at.Missing(cmd.Context()); err != nil {
					terminal.Say(s.Out, "nothing to migrate: %s", err)
					return nil
				}
				terminal.Say(s.Out, "nothing to migrate: %s", at.Name)
				return nil
			case show:
				return e.Print(s.Out, at.URL)
			}
			upToDate := at.IsMigrated(cmd.Context())
			if err := at.Migrate(cmd.Context()); err != nil {
				return err
			}
			if upToDate {
				terminal.Say(s.Out, "up to date: %s", at.Name)
				return nil
			}
			terminal.Say(s.Out, "migrated: %s", at.Name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the SQL, and run nothing")
	return cmd
}

// placeOf returns the location of the journal named by the argument of a command, or else by --journal. A URL with a password is an error: other users can see
// arguments.
func placeOf(f *session.JournalFlags, args []string) (place.Place, error) {
	if len(args) == 0 {
		return f.Place()
	}
	if f.Journal != "" {
		return place.Place{}, errors.New("the journal is named twice, as an argument and by --journal; say one")
	}
	if place.ShowsPassword(args[0]) {
		return place.Place{}, place.ErrPasswordShown(place.FromArgument, "@FILE")
	}
	return f.PlaceAt(place.FromArgument, args[0])
}
