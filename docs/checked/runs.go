package checked

// Where says where a command of a page is run.
type Where string

// Where commands are run. What needs AWS is run by nobody here.
const (
	ByCI    Where = ".ci/run"    // as it is, or as a part of what .ci/run calls
	ByPages Where = "make pages" // TestTheCommandsOfThePagesWork
	ByStack Where = "e2e"        // TestTheCommandsOfThePagesWorkOnTheStack
	ByAWS   Where = "AWS"        // it needs an account of AWS
)

// Run says how a command of a page is run.
type Run struct {
	Where Where
	// As is run in the command's place where the command would take too long or holds
	// something to be filled in; with ByCI it is what .ci/run or the Makefile has for it.
	As string
}

// Runs has a row for each command that is on a page, by its name.
var Runs = map[string]Run{
	// Blocks.
	"README.md, block 1":          {ByCI, "make test"}, // and make demo, which has a row below
	"README.md, block 2":          {Where: ByStack},
	"README.md, block 3":          {Where: ByAWS},
	"docs/api.md, block 1":        {Where: ByStack},
	"docs/operations.md, block 1": {Where: ByStack},
	"docs/receiving.md, block 1":  {Where: ByStack},

	// The Makefile's targets.
	"make help":                     {Where: ByPages},
	"make demo":                     {Where: ByPages},
	"make up":                       {Where: ByPages},
	"make down":                     {Where: ByPages},
	"make test":                     {ByCI, "make test"},
	"make test-go":                  {ByCI, "--no-print-directory unit test-localstack test-stack"},
	"make test-localstack":          {ByCI, "--no-print-directory unit test-localstack test-stack"},
	"make test-stack":               {ByCI, "--no-print-directory unit test-localstack test-stack"},
	"make test-sam":                 {ByCI, "make test-sam"},
	"make build":                    {ByCI, "build ARCHITECTURE=$(LOCAL_ARCHITECTURE)"},
	"make netns":                    {ByCI, "make netns"},
	"make verifiers":                {ByCI, "make verifiers"},
	"make pages":                    {ByCI, "make pages"},
	"make model":                    {ByPages, "make model SEARCH=lease-per-delivery"},
	"make chaos":                    {ByCI, "--no-print-directory unit test-localstack test-stack"}, // the same test, with 10 kills
	"make fuzz":                     {ByPages, "make fuzz FUZZ_TIME=20x FUZZ_IN=deploy/iam"},
	"make sim":                      {ByPages, "make sim SIM='-seeds 20'"},
	"make bench":                    {ByPages, "make bench SCENARIO=help"}, // the runs themselves: burst below
	"make lock":                     {ByPages, `copy=$(mktemp -d) && cp -R localstack go.mod "$copy" && ln -s "$PWD/.tools" "$copy/.tools" && "$copy/localstack/install" lock; status=$?; rm -rf "$copy"; exit $status`},
	"cargo --locked":                {ByCI, "make test"}, // localstack/install builds the engine with it
	".ci/run":                       {ByCI, "#!/usr/bin/env bash"},
	".ci/vulncheck":                 {ByCI, ".ci/vulncheck"},
	"sam build":                     {ByCI, "$(SAM) build --config-env local"},
	"ARCHITECTURE=x86_64 sam build": {ByCI, "ARCHITECTURE=$(LOCAL_ARCHITECTURE) $(SAM) build --config-env local"},
	"sam deploy":                    {ByCI, "$(SAM) deploy --config-env local"},
	"sam deploy --guided":           {Where: ByAWS},
	"sam delete":                    {Where: ByAWS},
	"make sim SIM='-steps 50000000 -beside 2 -from 1000000'": {ByPages, "make sim SIM='-steps 20000 -beside 2 -from 1000000'"},
	"make sim SIM='-tell -from 7'":                           {Where: ByPages},

	"localstack/tests/test_stack.py":                       {ByCI, "-m pytest --quiet"},
	"localstack/stack run --bare --allow FILE… -- COMMAND": {ByCI, "$(STACK) run --bare --allow"},

	// Go.
	"go install ./cmd/colophon":                                              {Where: ByPages},
	"go run ./bench help":                                                    {Where: ByPages},
	"go run ./bench cost":                                                    {ByPages, `saved=$(mktemp -d) && cp docs/cost.md docs/benchmarks/cost.json "$saved"; go run ./bench cost; status=$?; cp "$saved/cost.md" docs/; cp "$saved/cost.json" docs/benchmarks/; exit $status`},
	"go run ./bench scale":                                                   {ByPages, `saved=$(mktemp) && cp docs/scale.md "$saved"; go run ./bench scale; status=$?; cp "$saved" docs/scale.md; exit $status`},
	"go run ./bench burst -profile FOLDER":                                   {ByPages, `go run ./bench burst -row=false -publishes 50 -bare 100ms -profile "$FOLDER"`},
	"go tool pprof -top -cum FOLDER/api-profile.pprof":                       {ByPages, `go tool pprof -top -cum "$FOLDER/api-profile.pprof"`},
	"go test -v -run 'Budget|TwoThousand' ./internal/content":                {Where: ByPages},
	"go test -run '^$' -bench Worlds ./internal/sim":                         {ByPages, "go test -run '^$' -bench Worlds -benchtime 1x ./internal/sim"},
	"go list -m -u -retracted":                                               {ByPages, "go list -m -u -retracted github.com/spf13/cobra"},
	"go get github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1": {ByCI, "make verifiers"}, // in go.mod
	"npm install standardwebhooks@1.1.1":                                     {ByCI, "make verifiers"}, // docs/checked/install
	"pip install standardwebhooks==1.1.0":                                    {ByCI, "make verifiers"}, // docs/checked/install

	// The model.
	"docs/model/check.sh full":                   {ByPages, "docs/model/check.sh full lease-per-delivery"},
	"docs/model/check.sh full NAME …":            {ByPages, "docs/model/check.sh full lease-per-delivery clock-not-asked"},
	"docs/model/check.sh full pause-and-removal": {ByPages, "docs/model/check.sh full lease-per-delivery"},

	// The command.
	"colophon --help":                             {Where: ByStack},
	"colophon completion":                         {Where: ByStack},
	"colophon redrive":                            {Where: ByStack},
	"colophon redrive --return":                   {Where: ByStack},
	"colophon destination reseal":                 {Where: ByStack},
	"colophon token list":                         {Where: ByStack},
	"colophon doctor":                             {ByStack, "colophon doctor PROJECT DESTINATION"},
	"colophon doctor PROJECT DESTINATION":         {Where: ByStack},
	"colophon verify PROJECT DESTINATION RELEASE": {Where: ByStack},
	"colophon destination rotate-secret":          {ByStack, "colophon destination rotate-secret PROJECT DESTINATION"},
	"colophon destination revoke-old-secret":      {ByStack, "colophon destination revoke-old-secret PROJECT DESTINATION"},

	// What needs AWS.
	"aws dynamodb update-table --no-deletion-protection-enabled":                                                    {Where: ByAWS},
	"aws lambda list-event-source-mappings --function-name …":                                                       {Where: ByAWS},
	"aws lambda update-event-source-mapping --uuid … --no-enabled":                                                  {Where: ByAWS},
	"aws lambda put-function-concurrency --reserved-concurrent-executions 0":                                        {Where: ByAWS},
	"aws dynamodb restore-table-to-point-in-time --source-table-name … --target-table-name … --restore-date-time …": {Where: ByAWS},
	"sam logs":                            {Where: ByAWS},
	"sam deploy --parameter-overrides …":  {Where: ByAWS},
	"make deploy":                         {Where: ByAWS},
	"make deploy MOVE_TABLES=yes":         {Where: ByAWS},
	"make deploy STACK_NAME=…":            {Where: ByAWS},
	"make lint":                           {ByCI, "make lint"},
	"make deploy ARCHITECTURE=x86_64":     {Where: ByAWS},
	"go run ./deploy/pair .aws-sam/build": {ByCI, "go run ./deploy/pair .aws-sam/build"},
	"colophon restore prepare --content-table … --delivery-table …": {ByCI, "make test-restore"}, // e2e/restore_test.go
	"make test-restore":                             {ByCI, "make test-restore"},
	"aws lambda delete-function-concurrency":        {Where: ByAWS},
	"aws dynamodb describe-table --table-name …":    {Where: ByAWS},
	"aws dynamodb delete-table --table-name …":      {Where: ByAWS},
	"aws kms schedule-key-deletion --key-id …":      {Where: ByAWS},
	"sam logs --cw-log-group /colophon/<stack>/api": {Where: ByAWS},
}
