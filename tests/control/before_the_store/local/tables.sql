BEGIN TRANSACTION;
CREATE TABLE alarm (
	system TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	raised_ns BIGINT NOT NULL, 
	run BIGINT, 
	severity TEXT NOT NULL, 
	what TEXT NOT NULL, 
	value TEXT, 
	"limit" TEXT, 
	do TEXT NOT NULL, 
	process TEXT, 
	acked_by TEXT, 
	acked_ns BIGINT, 
	cleared_ns BIGINT, 
	followed_ns BIGINT, 
	PRIMARY KEY (system, cause, raised_ns)
);
INSERT INTO "alarm" VALUES('lab','stall',100,1,'alarm','nothing comes','0.5','1','look','reader',NULL,NULL,NULL,NULL);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE audit (
	id BIGINT NOT NULL, 
	system TEXT NOT NULL, 
	time_ns BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	whence TEXT NOT NULL, 
	role TEXT NOT NULL, 
	command TEXT NOT NULL, 
	arguments TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES(1,'lab',1795953124951730840,'ana','shell','shifter','start','{"run_type":"physics"}','done','','0000000000000000000000000000000000000000000000000000000000000000','7d922e4fbf4ad3344768b3a56218aa23a918ffaac5b225f3443a6a4a9d0ee1f8');
CREATE TABLE chain (
	name TEXT NOT NULL, 
	last BIGINT NOT NULL, 
	sha256 TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "chain" VALUES('audit',1,'7d922e4fbf4ad3344768b3a56218aa23a918ffaac5b225f3443a6a4a9d0ee1f8');
CREATE TABLE config (
	sha256 TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (sha256)
);
INSERT INTO "config" VALUES('da22deaf0f5fe973aee559a653802fb98c9f193377e904eaa21ae9ba307cfa67','{"classes":{"reader":{"file":"/there/readers/reader.toml","origins":{"readout.name":"--set","readout.threads":"default"},"settings":["readout.name=lab-reader"],"sha256":"1111111111111111111111111111111111111111111111111111111111111111","text":"[readout]\r\n# exact\n","values":{"readout.name":"\"reader\"","readout.threads":"2"}}},"file":"/there/lab.toml","sha256":"0000000000000000000000000000000000000000000000000000000000000000","system":"[control]\nname = \"lab\"\n"}');
CREATE TABLE counter (
	run BIGINT NOT NULL, 
	process TEXT NOT NULL, 
	name TEXT NOT NULL, 
	labels TEXT NOT NULL, 
	when_ns BIGINT NOT NULL, 
	value DOUBLE NOT NULL, 
	PRIMARY KEY (run, process, name, labels, when_ns)
);
INSERT INTO "counter" VALUES(1,'reader','fragments_built','',77,4.0);
INSERT INTO "counter" VALUES(1,'reader','rate','',77,0.5);
CREATE TABLE file (
	run BIGINT NOT NULL, 
	host TEXT NOT NULL, 
	path TEXT NOT NULL, 
	bytes BIGINT, 
	sha256 TEXT, 
	events BIGINT, 
	verified BOOLEAN NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (run, host, path)
);
INSERT INTO "file" VALUES(1,'local','/data/run.data',4096,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',4,0,'closed');
CREATE TABLE journal (
	id TEXT NOT NULL, 
	last BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "journal" VALUES('3bb22aa6924e4bdd',15);
CREATE TABLE lumi_block (
	run BIGINT NOT NULL, 
	first_trigger BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	scan_step BIGINT NOT NULL, 
	first_id BIGINT, 
	seen_ns BIGINT, 
	triggers BIGINT, 
	recorded BIGINT, 
	PRIMARY KEY (run, first_trigger)
);
CREATE TABLE note (
	id INTEGER NOT NULL, 
	run BIGINT, 
	author TEXT NOT NULL, 
	written_ns BIGINT NOT NULL, 
	text TEXT NOT NULL, 
	replaces BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "note" VALUES(1,1,'ana',1795953124949990033,'beam was off',NULL);
INSERT INTO "note" VALUES(2,2,'ana',1795953124991231952,'written',NULL);
CREATE TABLE process (
	run BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	class TEXT, 
	kind TEXT, 
	host TEXT, 
	role TEXT, 
	pid BIGINT, 
	build TEXT, 
	settings TEXT, 
	exit BIGINT, 
	signal BIGINT, 
	core TEXT, 
	report TEXT, 
	PRIMARY KEY (run, name)
);
INSERT INTO "process" VALUES(1,'reader','reader','readout','local','essential',7,'b1','["readout.name=lab-reader"]',0,NULL,NULL,'{"chunks":{"sent":8},"run":{"condition":"GOOD"}}');
INSERT INTO "process" VALUES(2,'reader','reader','readout','local','essential',7,'b1','["readout.name=lab-reader"]',NULL,NULL,NULL,NULL);
CREATE TABLE quality (
	id INTEGER NOT NULL, 
	run BIGINT NOT NULL, 
	subsystem TEXT NOT NULL, 
	from_ns BIGINT, 
	to_ns BIGINT, 
	verdict TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	verified_by TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "quality" VALUES(1,1,'muons',NULL,NULL,'good','bob',NULL);
CREATE TABLE remembered (
	system TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (system, "key")
);
INSERT INTO "remembered" VALUES('lab','launched','{"processes":{}}');
INSERT INTO "remembered" VALUES('lab','memory','{"choice":"none"}');
CREATE TABLE run (
	number BIGINT NOT NULL, 
	system TEXT NOT NULL, 
	type TEXT NOT NULL, 
	state TEXT NOT NULL, 
	condition TEXT, 
	flags TEXT NOT NULL, 
	asked_ns BIGINT NOT NULL, 
	first_event_ns BIGINT, 
	stopped_ns BIGINT, 
	closed_ns BIGINT, 
	reason TEXT NOT NULL, 
	config_sha256 TEXT, 
	build TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	comment TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "run" VALUES(1,'lab','physics','CLOSED','GOOD','',1795953124917701781,1000000000,3000000000,4000000000,'','da22deaf0f5fe973aee559a653802fb98c9f193377e904eaa21ae9ba307cfa67','b1','ana','first light');
INSERT INTO "run" VALUES(2,'lab','cosmics','OPEN',NULL,'',1795953124984206021,NULL,NULL,NULL,'','da22deaf0f5fe973aee559a653802fb98c9f193377e904eaa21ae9ba307cfa67','b1','ana','open at the upgrade');
CREATE TABLE run_number (
	system TEXT NOT NULL, 
	last BIGINT NOT NULL, 
	PRIMARY KEY (system)
);
INSERT INTO "run_number" VALUES('lab',2);
CREATE TABLE transition (
	id INTEGER NOT NULL, 
	run BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	from_state TEXT NOT NULL, 
	to_state TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	began_ns BIGINT, 
	ended_ns BIGINT, 
	outcome TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "transition" VALUES(1,1,'start','READY','RUNNING','ana',5,9,'done','');
CREATE TABLE unusable (
	journal TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	record TEXT NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (journal, sequence)
);
CREATE UNIQUE INDEX one_open_run ON run (system) WHERE state = 'OPEN';
CREATE INDEX run_asked ON run (asked_ns);
CREATE INDEX transition_run ON transition (run);
CREATE INDEX alarm_raised ON alarm (raised_ns);
CREATE INDEX note_run ON note (run);
CREATE INDEX quality_run ON quality (run);
COMMIT;
