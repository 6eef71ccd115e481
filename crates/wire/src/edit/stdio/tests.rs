use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::super::samples::{CommandEditor, DELAY, Identity};
use super::*;

/// What a client gets and what a server gets, of what each of them says.
async fn passed(editor: Arc<dyn Editor>, said: [Vec<Vec<u8>>; 2], width: usize) -> [Vec<u8>; 2] {
    let (stdin, mut server_input) = duplex(width);
    let (mut server_output, stdout) = duplex(width);
    let EditedPipes {
        stdin: mut near_stdin,
        stdout: mut near_stdout,
    } = EditedPipes::new(&editor, stdin, stdout);
    let [client, server] = said;
    let writing = tokio::spawn(async move {
        for chunk in client {
            near_stdin.write_all(&chunk).await.unwrap();
        }
    });
    let speaking = tokio::spawn(async move {
        for chunk in server {
            server_output.write_all(&chunk).await.unwrap();
        }
    });
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let (one, other) = tokio::join!(
        near_stdout.read_to_end(&mut to_client),
        server_input.read_to_end(&mut to_server)
    );
    one.and(other).unwrap();
    writing.await.unwrap();
    speaking.await.unwrap();
    [to_client, to_server]
}

#[tokio::test]
async fn a_delayed_line_is_forwarded_later() {
    let editor: Arc<dyn Editor> = Arc::new(CommandEditor);
    let before = std::time::Instant::now();
    let said = [vec![b"delay\n".to_vec()], vec![b"a\ndelay\nb".to_vec()]];
    let [to_client, to_server] = passed(editor, said, 64).await;
    assert_eq!(to_client, b"a\ndelay\nb");
    assert_eq!(to_server, b"delay\n");
    assert!(before.elapsed() >= DELAY);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_identity_edit_changes_nothing_between_pipes(
        client in chunks(),
        server in chunks(),
        width in 1_usize..300,
        limit in 0_usize..300,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let expected = [server.concat(), client.concat()];
        let said = [client, server];
        let out = runtime.block_on(passed(Arc::new(Identity(limit)), said, width));
        prop_assert_eq!(out, expected);
    }
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![5 => any::<u8>(), 1 => Just(b'\n')];
    prop::collection::vec(prop::collection::vec(byte, 0..200), 0..8)
}
