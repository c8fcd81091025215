package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

const databasePassword = "canary-pg-2f60b9"

// newPostgresWorld has the postgres pack connected as bob, who owns the database shop of a real server that asks for
// passwords and shows a certificate. asAda runs SQL as its superuser.
func newPostgresWorld(t *testing.T) (w *world, port string, asAda func(database, sql string) string) {
	t.Helper()
	if postgresDir() == "" {
		t.Skip("postgres is not installed")
	}
	web := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1, and its own authority
	defer web.Close()
	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	files := map[string]string{"password": databasePassword, "server.crt": cert, "server.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))}
	port = fmt.Sprint(postgres(t, "scram-sha-256", files, "ssl=on", "ssl_cert_file=DIR/server.crt", "ssl_key_file=DIR/server.key"))
	asAda = func(database, sql string) string {
		t.Helper()
		c := exec.Command(filepath.Join(postgresDir(), "psql"), "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "ada", "-d", database, "-v", "ON_ERROR_STOP=1")
		c.Env, c.Stdin = []string{"PGPASSWORD=" + databasePassword}, strings.NewReader(sql)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", sql, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	asAda("postgres", "CREATE ROLE bob LOGIN PASSWORD '"+databasePassword+"'; CREATE ROLE boss CREATEROLE; CREATE DATABASE shop OWNER bob;")
	w = newPackWorld(t, "postgres", nil, filepath.Join(postgresDir(), "psql"))
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".postgresql/root.crt": cert, ".psqlrc": "\\! touch ran\n", ".pgpass": "*:*:*:*:wrong\n"})
	w.must("allow", filepath.Join(postgresDir(), "psql")) // Debian's own psql is a script that chooses one
	w.must("allow", "--host", "postgres", "127.0.0.1:"+port)
	w.must("allow", "--read", "postgres", "~/.postgresql/root.crt")
	w.vars = strings.NewReplacer("5432", port)
	w.env = []string{"PGHOST=evil.example.test", "PGSERVICE=evil", "PGOPTIONS=-c default_transaction_read_only=off", "PSQLRC=" + filepath.Join(w.dir, "home", ".psqlrc"), "PGSSLMODE=disable"}
	w.connect("postgres", "bob:"+databasePassword)
	return w, port, asAda
}

// §14.2, §8.4: the postgres pack keeps its evals on a real server; a query can't leave its read-only transaction, no SQL
// reaches psql or the server's machine, a change is whole or nothing, and the password is nowhere but in the one child.
func Test_14_2_ThePackPostgres(t *testing.T) {
	w, port, asAda := newPostgresWorld(t)
	asAda("shop", `SET ROLE bob; CREATE TABLE t(id bigint PRIMARY KEY, n text, j json, x numeric); CREATE SEQUENCE s; CREATE INDEX n ON t(n);
		INSERT INTO t VALUES (9007199254740993, 'é', E'{"a":\n 1}', 1.50), (2, NULL, NULL, 'NaN');
		CREATE PROCEDURE leave() LANGUAGE plpgsql AS 'BEGIN DELETE FROM t; COMMIT; END'; CREATE FUNCTION put() RETURNS int LANGUAGE sql AS 'DELETE FROM t; SELECT 1';`)
	for _, f := range []string{"json_build_object(text, bigint)", "json_build_object(text, json, text, boolean)", "to_json(record)", "rtrim(text, text)", "current_setting(text)"} {
		asAda("shop", "CREATE FUNCTION public."+f+" RETURNS json LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trap''; END'") // nobody asked for these
	}
	w.evalsOf(shippedPacks, "postgres")
	at := func(sql, more string) string {
		return fmt.Sprintf(`{"host":"127.0.0.1","port":%s,"database":"shop","sql":%s%s}`, port, quoted(sql), more)
	}
	r, out := w.call("postgres", "query", rawArgs(at("SELECT * FROM t ORDER BY id -- all", "")), false)
	if !r.OK || !strings.Contains(out, `"id":9007199254740993`) || !strings.Contains(out, `"x":1.50`) || !strings.Contains(out, `"x":"NaN"`) {
		t.Errorf("query over TLS: %s", out)
	}
	for _, sql := range []string{
		"DELETE FROM t", "SELECT 1; DELETE FROM t", "SELECT 1) q; COMMIT; DELETE FROM t; --", "WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d", "COMMIT", "ROLLBACK; DELETE FROM t",
		"SELECT set_config('transaction_read_only', 'off', false)", "SELECT put()", "CALL leave()", "DO $$ BEGIN COMMIT; END $$", "SELECT nextval('s')", "BEGIN READ WRITE", "SELECT 1 INTO z",
		"SELECT pg_read_file('/etc/passwd')", "COPY t TO PROGRAM 'touch /tmp/ran'", `\! touch ran`, "SELECT 1 \\gexec", "SELECT 1\n\\! touch ran\n", `\copy t to 'ran'`, "SELECT :'sql'", "SELECT set_config('role', 'ada', false)",
		"SELECT 1 AS a, 2 AS a",
	} {
		if r, out := w.call("postgres", "query", rawArgs(at(sql, `,"tls":"disable"`)), false); r.OK {
			t.Errorf("query %q: %s", sql, out)
		}
		if testing.Short() && strings.Contains(sql, "COMMIT; DELETE") {
			break
		}
	}
	for _, sql := range []string{"COPY t TO PROGRAM 'id'", "DELETE FROM t; COMMIT", "DELETE FROM t; SELECT 1/0", `\! touch ran`, "VACUUM", "DO $$ BEGIN DELETE FROM t; COMMIT; END $$", "CALL leave()", "SET SESSION AUTHORIZATION ada"} {
		w.refuses(protocol.CommandFailed, "", "postgres", "exec", at(sql, ""))
	}
	if got := asAda("shop", "SELECT count(*) FROM t"); got != "2" || w.work("ran") != "" {
		t.Fatalf("%s rows are left, or a program ran", got)
	}
	w.gives("postgres", "exec", at("UPDATE t SET n = 'x'", ""), `{"rows":2}`)
	w.gives("postgres", "exec", at("CREATE TABLE made(id int)", ""), `{"rows":0}`)
	if r, out := w.call("postgres", "explain", rawArgs(at("DELETE FROM t", "")), false); !r.OK || !matches(t, `.plan[0].Plan.Operation == "Delete" and .problem == null`, r.Result) {
		t.Errorf("explain: %s", out)
	}
	if got := asAda("shop", "SELECT count(*) FILTER (WHERE n = 'x') FROM t"); got != "2" {
		t.Errorf("%s rows were changed", got)
	}
	w.postgresTarget(port, asAda)
}

// postgresTarget holds schema, what a call may name as its server, which roles are taken, and where the password is.
func (w *world) postgresTarget(port string, asAda func(database, sql string) string) {
	w.t.Helper()
	r, out := w.call("postgres", "schema", rawArgs(`{"host":"127.0.0.1","port":`+port+`,"database":"shop","table":"t"}`), false)
	if !r.OK || !matches(w.t, `.tables | length == 1 and .[0].columns[0] == {name:"id",type:"bigint",nullable:false,default:null} and (.[0].indexes|length) == 2 and .[0].constraints == ["PRIMARY KEY (id)"]`, r.Result) {
		w.t.Errorf("schema: %s", out)
	}
	for _, args := range []string{`{"host":"/tmp","database":"shop"}`, `{"host":"127.0.0.1,evil.example","database":"shop"}`, `{"host":"127.0.0.1","database":"host=evil.example"}`,
		`{"host":"127.0.0.1","database":"postgresql://evil.example/x"}`, `{"host":"127.0.0.1","database":"shop sslmode=disable"}`, `{"host":"-c","database":"shop"}`} {
		w.refuses(protocol.InvalidArgs, "", "postgres", "schema", args)
	}
	w.refuses(protocol.CommandFailed, `"denied":["name evil.example.test"]`, "postgres", "schema", `{"host":"evil.example.test","database":"shop"}`)
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".postgresql/root.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"})
	w.refuses(protocol.CommandFailed, "certificate", "postgres", "schema", `{"host":"127.0.0.1","port":`+port+`,"database":"shop"}`)
	asAda("shop", "GRANT boss TO bob")
	w.refuses(protocol.CommandFailed, "owns no more than its tables", "postgres", "query", `{"host":"127.0.0.1","port":`+port+`,"database":"shop","tls":"disable","sql":"SELECT 1"}`)
	w.must("audit", "verify")
	if out, err := exec.Command("grep", "-rlF", databasePassword, w.dir).Output(); err == nil {
		w.t.Errorf("files hold the password: %s", out)
	}
}
