//! `aiseki health`: what a container asks of the server in it.

use crate::program::Program;
use crate::running::Running;

#[test]
fn a_server_that_lives_says_so_and_one_that_is_not_there_does_not() {
    let server = Running::start(&[]);
    assert_eq!(server.done(&["health"]), "{\"status\":\"ok\"}\n");
    assert!(server.done(&["health", "--ready"]).contains("\"ready\""));
    // Another path is another program, as far as anybody can tell.
    let elsewhere = format!("{}/elsewhere", server.url());
    assert_eq!(server.program().run(&["health", "--server", &elsewhere]).code, Some(1));
    drop(server);
    let port = aiseki_testkit::free_port().expect("a port");
    let ended = Program::new().run(&["health", "--server", &format!("http://127.0.0.1:{port}")]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
}
