// Package migrations tests that goose and atlas run the steps of the journal's schema, the files of Options.Migrations in persist/postgres and
// persist/mysql, on PostgreSQL and MariaDB. With the tag flyway, and its command in FLYWAY, they run it, too. It has no code for programs; the example shows the lines that hand the files to each tool.
package migrations
