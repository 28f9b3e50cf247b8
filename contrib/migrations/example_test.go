package migrations_test

import (
	"database/sql"
	"fmt"
	"log"
	"os"

	"ariga.io/atlas/sql/sqltool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/oncehttp/oncehttp/persist/postgres"
)

// The files go to goose as they are, with a table of their own, and to atlas by a folder in the format of goose.
func Example() {
	files := postgres.Options{}.Migrations()

	db, err := sql.Open("pgx", "postgres://shop@127.0.0.1:5432/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("goose_oncehttp"))
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range provider.ListSources() { // provider.Up runs them
		fmt.Println("goose:", step.Version, step.Path)
	}

	folder, err := os.MkdirTemp("", "oncehttp")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.CopyFS(folder, files); err != nil {
		log.Fatal(err)
	}
	dir, err := sqltool.NewGooseDir(folder) // for migrate.NewExecutor, after migrate.WriteSumFile
	if err != nil {
		log.Fatal(err)
	}
	steps, err := dir.Files()
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range steps {
		fmt.Println("atlas:", step.Version(), step.Name())
	}
	// Output:
	// goose: 9 00009_oncehttp_journal.sql
	// atlas: 00009 00009_oncehttp_journal.sql
}
