# Reads a timetable in GTFS form (calendar, calendar_dates, stops, routes, trips, stop_times, in this
# order) and answers one question. argv[1] is the question: plan or departures.
#
# plan works in rounds: round k holds the earliest arrival at each stop with at most k vehicles. Each
# round walks every trip of the day once, boards it where the round before allows, and rides to its end.

BEGIN {
	question = ARGV[1]
	ARGV[1] = ""
	rounds = 4
	change = 2 # minutes between two vehicles
	FS = "\n"
	for (i = 1; i < 32; i++) escape[sprintf("%c", i)] = sprintf("\\u%04x", i)
	escape["\""] = "\\\""
	escape["\\"] = "\\\\"
}

FNR == 1 {
	file = FILENAME
	sub(/.*\//, "", file)
	sub(/\r$/, "")
	delete column
	width = csv($0)
	for (i = 1; i <= width; i++) column[field[i]] = i
	next
}

{ sub(/\r$/, ""); csv($0) }

file == "calendar.txt" {
	id = get("service_id")
	starts[id] = get("start_date")
	ends[id] = get("end_date")
	week[id] = get("monday") get("tuesday") get("wednesday") get("thursday") get("friday") get("saturday") get("sunday")
	if (first == "" || starts[id] < first) first = starts[id]
}

file == "calendar_dates.txt" { exception[get("service_id"), get("date")] = get("exception_type") }

file == "stops.txt" {
	id = get("stop_id")
	name[id] = get("stop_name")
	byname[tolower(name[id])] = id
	byid[tolower(id)] = id
}

file == "routes.txt" { short[get("route_id")] = get("route_short_name") }

file == "trips.txt" {
	id = get("trip_id")
	route[id] = get("route_id")
	service[id] = get("service_id")
	headsign[id] = get("trip_headsign")
}

file == "stop_times.txt" {
	id = get("trip_id")
	if (!(id in calls)) order[++trips] = id
	n = ++calls[id]
	at[id, n] = get("stop_id")
	arrives[id, n] = minutes(get("arrival_time"))
	departs[id, n] = minutes(get("departure_time"))
}

END {
	if (failed) exit 1
	day = ENVIRON["HCP_DATE"]
	gsub(/-/, "", day)
	if (day == "") day = first
	start = minutes((ENVIRON["HCP_TIME"] == "") ? "00:00" : ENVIRON["HCP_TIME"])
	if (question == "plan") plan()
	else departures()
	if (failed) exit 1
}

# csv splits a line into field[1..n]; quotes and doubled quotes as in RFC 4180.
function csv(line,    n, i, c, quoted, text) {
	n = 0
	text = ""
	quoted = 0
	for (i = 1; i <= length(line); i++) {
		c = substr(line, i, 1)
		if (quoted && c == "\"" && substr(line, i + 1, 1) == "\"") { text = text c; i++ }
		else if (c == "\"") quoted = !quoted
		else if (c == "," && !quoted) { field[++n] = text; text = "" }
		else text = text c
	}
	field[++n] = text
	return n
}

function get(key) { return (key in column) ? field[column[key]] : "" }

function minutes(clock,    part) {
	split(clock, part, ":")
	return part[1] * 60 + part[2]
}

function clock(m) { return sprintf("%02d:%02d", int(m / 60), m % 60) }

# weekday of yyyymmdd, 1 = Monday (Zeller).
function weekday(d,    y, m, q) {
	y = substr(d, 1, 4) + 0
	m = substr(d, 5, 2) + 0
	q = substr(d, 7, 2) + 0
	if (m < 3) { m += 12; y-- }
	return (q + int(13 * (m + 1) / 5) + y + int(y / 4) - int(y / 100) + int(y / 400) + 5) % 7 + 1
}

function runs(id,    s) {
	s = service[id]
	if ((s, day) in exception) return exception[s, day] == 1
	return day >= starts[s] && day <= ends[s] && substr(week[s], weekday(day), 1) == 1
}

function find(text) {
	if (tolower(text) in byid) return byid[tolower(text)]
	if (tolower(text) in byname) return byname[tolower(text)]
	printf "No stop is called \"%s\".\n", text > "/dev/stderr"
	failed = 1
	return ""
}

function json(text,    i, c, out) {
	out = "\""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		out = out ((c in escape) ? escape[c] : c)
	}
	return out "\""
}

function stop(id) { return sprintf("{\"id\":%s,\"name\":%s}", json(id), json(name[id])) }

function date() { return json(substr(day, 1, 4) "-" substr(day, 5, 2) "-" substr(day, 7, 2)) }

function departures(    s, t, id, n, k, best, limit, count) {
	s = find(ENVIRON["HCP_STOP"])
	if (failed) return
	count = 0
	for (t = 1; t <= trips; t++) {
		id = order[t]
		if (!runs(id)) continue
		for (n = 1; n < calls[id]; n++)
			if (at[id, n] == s && departs[id, n] >= start) { count++; when[count] = departs[id, n]; whose[count] = id }
	}
	limit = (ENVIRON["HCP_LIMIT"] == "") ? 10 : ENVIRON["HCP_LIMIT"] + 0
	printf "{\"date\":%s,\"stop\":%s,\"departures\":[", date(), stop(s)
	for (k = 1; k <= limit; k++) {
		best = 0
		for (n = 1; n <= count; n++)
			if (n in when && (!best || when[n] < when[best])) best = n
		if (!best) break
		printf "%s{\"time\":\"%s\",\"route\":%s,\"to\":%s}", (k > 1) ? "," : "", clock(when[best]),
			json(short[route[whose[best]]]), json(headsign[whose[best]])
		delete when[best]
	}
	print "]}"
}

function plan(    origin, goal, k) {
	origin = find(ENVIRON["HCP_FROM"])
	goal = find(ENVIRON["HCP_TO"])
	if (failed) return
	arrival[0, origin] = start
	final = 0
	for (k = 1; k <= rounds; k++) ride(k, goal)
	printf "{\"date\":%s,\"from\":%s,\"to\":%s,", date(), stop(origin), stop(goal)
	if (origin == goal || !((final, goal) in arrival)) {
		print "\"depart\":null,\"arrive\":null,\"minutes\":null,\"transfers\":null,\"legs\":[]}"
		return
	}
	legs(goal)
}

# ride fills round k from round k-1; final is the round that reaches the goal earliest, with fewest vehicles.
function ride(k, goal,    t, id, n, s, boarded, ready) {
	for (t = 1; t <= trips; t++) {
		id = order[t]
		if (!runs(id)) continue
		boarded = 0
		for (n = 1; n <= calls[id]; n++) {
			s = at[id, n]
			if (boarded && (!(s in earliest) || arrives[id, n] < earliest[s])) {
				earliest[s] = arrives[id, n]
				arrival[k, s] = arrives[id, n]
				by[k, s] = id
				on[k, s] = boarded
				off[k, s] = n
			}
			if (boarded || !((k - 1, s) in arrival)) continue
			ready = arrival[k - 1, s] + ((k > 1) ? change : 0)
			if (departs[id, n] >= ready) boarded = n
		}
	}
	if ((k, goal) in arrival) final = k
}

function legs(goal,    k, s, id, a, b, text, depart) {
	s = goal
	text = ""
	for (k = final; k > 0; k--) {
		id = by[k, s]
		a = on[k, s]
		b = off[k, s]
		depart = departs[id, a]
		text = sprintf("{\"route\":%s,\"towards\":%s,\"from\":%s,\"depart\":\"%s\",\"to\":%s,\"arrive\":\"%s\"}%s",
			json(short[route[id]]), json(headsign[id]), stop(at[id, a]), clock(depart), stop(s), clock(arrives[id, b]),
			(text == "") ? "" : "," text)
		s = at[id, a]
	}
	printf "\"depart\":\"%s\",\"arrive\":\"%s\",\"minutes\":%d,\"transfers\":%d,\"legs\":[%s]}\n",
		clock(depart), clock(arrival[final, goal]), arrival[final, goal] - depart, final - 1, text
}
