! The processes of an MPI job average a vector.
!
!     mpirun -n 4 average [ALGORITHM]
!
! The program initialises MPI and passes its communicator to Laconic, which
! loads the module for the MPI that the program is linked with. The module
! below declares the C functions.
module laconic
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: LAC_OK = 0
    integer(c_int), parameter :: LAC_F32 = 0
    integer(c_int), parameter :: LAC_FAMILY_GRADIENT = 1
    integer(c_int32_t), parameter :: LAC_RANK_ANY = -1

    type, bind(c) :: lac_algorithm_options
        integer(c_size_t) :: size
        type(c_ptr) :: spec, compressor, layout, topology, transport
        integer(c_int64_t) :: seed, session
        real(c_double) :: timeout
        logical(c_bool) :: training
        integer(c_int) :: nonfinite
    end type

    type, bind(c) :: lac_slice
        integer(c_size_t) :: tensor
        integer(c_int) :: dtype
        type(c_ptr) :: in, out
    end type

    interface
        function lac_error_message() bind(c)
            import :: c_ptr
            type(c_ptr) :: lac_error_message
        end function

        function lac_transport_join(t, spec, hub, rank, world) bind(c)
            import :: c_ptr, c_char, c_int, c_int32_t
            type(c_ptr), intent(out) :: t
            character(kind=c_char), intent(in) :: spec(*)
            type(c_ptr), value :: hub
            integer(c_int32_t), value :: rank, world
            integer(c_int) :: lac_transport_join
        end function

        function lac_layout_parse(layout, text, len) bind(c)
            import :: c_ptr, c_char, c_int, c_size_t
            type(c_ptr), intent(out) :: layout
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: len
            integer(c_int) :: lac_layout_parse
        end function

        function lac_topology_open(t, spec, workers, seed) bind(c)
            import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
            type(c_ptr), intent(out) :: t
            character(kind=c_char), intent(in) :: spec(*)
            integer(c_int32_t), value :: workers
            integer(c_int64_t), value :: seed
            integer(c_int) :: lac_topology_open
        end function

        subroutine lac_algorithm_options_init(options, size) bind(c)
            import :: lac_algorithm_options, c_size_t
            type(lac_algorithm_options), intent(out) :: options
            integer(c_size_t), value :: size
        end subroutine

        function lac_algorithm_open(a, options) bind(c)
            import :: c_ptr, c_int, lac_algorithm_options
            type(c_ptr), intent(out) :: a
            type(lac_algorithm_options), intent(in) :: options
            integer(c_int) :: lac_algorithm_open
        end function

        function lac_algorithm_family(a) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: a
            integer(c_int) :: lac_algorithm_family
        end function

        function lac_algorithm_start(a, slices, count) bind(c)
            import :: c_ptr, c_int, c_size_t, lac_slice
            type(c_ptr), value :: a
            type(lac_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_start
        end function

        function lac_algorithm_mix(a, round, slices, updates, count) bind(c)
            import :: c_ptr, c_int, c_size_t, c_int64_t, lac_slice
            type(c_ptr), value :: a, updates
            integer(c_int64_t), value :: round
            type(lac_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_mix
        end function

        function lac_algorithm_reduce(a, round, slices, count) bind(c)
            import :: c_ptr, c_int, c_size_t, c_int64_t, lac_slice
            type(c_ptr), value :: a
            integer(c_int64_t), value :: round
            type(lac_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_reduce
        end function

        subroutine lac_transport_leave(t) bind(c)
            import :: c_ptr
            type(c_ptr), value :: t
        end subroutine

        subroutine lac_algorithm_close(a) bind(c)
            import :: c_ptr
            type(c_ptr), value :: a
        end subroutine

        subroutine lac_topology_close(t) bind(c)
            import :: c_ptr
            type(c_ptr), value :: t
        end subroutine

        subroutine lac_layout_close(layout) bind(c)
            import :: c_ptr
            type(c_ptr), value :: layout
        end subroutine
    end interface
end module

program average
    use, intrinsic :: iso_fortran_env, only: output_unit
    use mpi
    use laconic
    implicit none

    integer, parameter :: n = 1000
    integer(c_int64_t), parameter :: rounds = 100
    character(len=*), parameter :: shapes = "x 1000"
    real(c_float), target :: x(n)
    character(len=64) :: algorithm, transport_spec
    character(kind=c_char), target :: spec(65)
    type(c_ptr) :: transport, layout, topology, handle
    type(lac_algorithm_options) :: options
    type(lac_slice) :: slices(1)
    integer(c_int64_t) :: round
    integer :: rank, workers, ierror, i
    real :: mean

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, workers, ierror)

    algorithm = "allreduce"
    if (command_argument_count() > 0) call get_command_argument(1, algorithm)
    do i = 1, len_trim(algorithm)
        spec(i) = algorithm(i:i)
    end do
    spec(len_trim(algorithm) + 1) = c_null_char

    ! Laconic sends its messages on a duplicate of this communicator.
    write (transport_spec, "(a, i0)") "mpi:comm=", MPI_COMM_WORLD
    call check(lac_transport_join(transport, &
        trim(transport_spec) // c_null_char, c_null_ptr, LAC_RANK_ANY, &
        LAC_RANK_ANY))
    call check(lac_layout_parse(layout, shapes, len(shapes, c_size_t)))
    call check(lac_topology_open(topology, "ring" // c_null_char, workers, &
        1_c_int64_t))

    call lac_algorithm_options_init(options, c_sizeof(options))
    options%spec = c_loc(spec)
    options%layout = layout
    options%topology = topology
    options%transport = transport
    call check(lac_algorithm_open(handle, options))

    x = real(rank)
    slices(1) = lac_slice(0, LAC_F32, c_loc(x), c_loc(x))
    call check(lac_algorithm_start(handle, slices, 1_c_size_t))
    if (lac_algorithm_family(handle) == LAC_FAMILY_GRADIENT) then
        call check(lac_algorithm_reduce(handle, 0_c_int64_t, slices, &
            1_c_size_t))
    else
        do round = 0, rounds - 1
            call check(lac_algorithm_mix(handle, round, slices, c_null_ptr, &
                1_c_size_t))
        end do
    end if

    mean = real(workers - 1) / 2
    if (maxval(abs(x - mean)) > 1e-4) then
        print "(a, i0, a, f8.4, a, f8.4)", "worker ", rank, " has ", x(1), &
            ", expected ", mean
        call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end if
    print "(a, i0, a, f8.4)", "worker ", rank, " has the mean ", x(1)

    ! Peers may read this worker's last messages until it has left.
    call lac_transport_leave(transport)
    call lac_algorithm_close(handle)
    call lac_topology_close(topology)
    call lac_layout_close(layout)
    call MPI_Finalize(ierror)

contains

    ! Prints the message of a call that failed and ends the job.
    subroutine check(status)
        integer(c_int), intent(in) :: status
        character(kind=c_char), pointer :: text(:)
        character(len=400) :: message
        integer :: k
        if (status == LAC_OK) return
        call c_f_pointer(lac_error_message(), text, [len(message)])
        message = ""
        do k = 1, len(message)
            if (text(k) == c_null_char) exit
            message(k:k) = text(k)
        end do
        print "(a)", trim(message)
        flush (output_unit)
        call MPI_Abort(MPI_COMM_WORLD, 1, k)
    end subroutine
end program
